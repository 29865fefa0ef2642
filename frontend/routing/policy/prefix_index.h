#pragma once

#include <absl/types/span.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

// Pages that one group has probably cached: those of the prompts it was sent,
// least recently used out first. Its memory is bounded by its capacity, about
// 30 bytes a page.
//
//   PrefixIndex index(/*capacity=*/4096);
//   index.Insert(HashPages(prompt));
//   index.NumMatching(HashPages(other));  // pages it begins with
//
// Not thread-safe.
class PrefixIndex {
 public:
  explicit PrefixIndex(size_t capacity)
      : capacity_(capacity),
        buckets_(std::bit_ceil(std::max<size_t>(capacity, 1)), kNone) {}

  // `chain` as HashPages makes it.
  size_t NumMatching(absl::Span<const uint64_t> chain) const;
  void Insert(absl::Span<const uint64_t> chain);

  size_t size() const { return pages_.size(); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // A slot is its place in pages_; the others it names are slots too.
  struct Page {
    uint64_t hash;
    uint32_t newer;
    uint32_t older;
    uint32_t next;  // in its bucket
  };

  void MakeNewest(uint64_t hash);
  // kNone where it is not known.
  uint32_t Find(uint64_t hash) const;
  uint32_t TakeSlot();
  // Where the first slot of its bucket is; hashes are as good as random.
  size_t BucketOf(uint64_t hash) const { return hash & (buckets_.size() - 1); }
  void EnterBucket(uint32_t slot);
  void LeaveBucket(uint32_t slot);
  void Unlink(uint32_t slot);
  void LinkNewest(uint32_t slot);

  const size_t capacity_;
  std::vector<Page> pages_;
  std::vector<uint32_t> buckets_;  // as many as a power of two
  uint32_t newest_ = kNone;
  uint32_t oldest_ = kNone;
};

}  // namespace lockstep
