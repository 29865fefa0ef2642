#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <map>
#include <string>

namespace lockstep::openai {

// How often clients sent which field that no schema here has. Such a field is
// accepted, as clients and servers do not learn of new ones on the same day;
// the first time, its name is logged. Any thread.
class UnknownFields {
 public:
  // Further names are counted together, as "…".
  static constexpr size_t kMaxNames = 64;

  void Count(absl::string_view name);
  std::map<std::string, uint64_t> counts() const;

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, uint64_t> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::openai
