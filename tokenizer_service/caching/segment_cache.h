#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

namespace lockstep {

// The ids of texts that were encoded, those that were used last, up to so many
// bytes of texts and ids.
//
//   SegmentCache cache(64 << 20);
//   if (!cache.Append(text, &ids)) cache.Insert(text, encode(text));
//
// A text is found by all of its bytes, not by a digest of them, and the order
// of texts is that of their bytes: nobody can make one that is taken for
// another, or many that are slow to find. Any thread.
class SegmentCache {
 public:
  explicit SegmentCache(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Appends the text's ids to `ids`. False: they are not known.
  bool Append(absl::string_view text, std::vector<uint32_t>* ids);
  // A text that would fill more than an eighth is not kept.
  void Insert(absl::string_view text, const std::vector<uint32_t>& ids);

  size_t bytes() const;

 private:
  struct Segment {
    std::string text;
    std::vector<uint32_t> ids;

    size_t bytes() const;
  };
  using Segments = std::list<Segment>;

  const size_t max_bytes_;
  mutable absl::Mutex mutex_;
  Segments segments_ ABSL_GUARDED_BY(mutex_);  // the last used first
  std::map<absl::string_view, Segments::iterator> by_text_
      ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep
