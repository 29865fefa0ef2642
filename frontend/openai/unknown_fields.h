#pragma once

#include <absl/algorithm/container.h>
#include <absl/base/thread_annotations.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>

namespace lockstep::openai {

// How often clients sent which field, of a request or of an object in it, that
// no schema here has. Such a field is
// accepted, as clients and servers do not learn of new ones on the same day;
// the first time, its name is logged. Any thread.
class UnknownFields {
 public:
  // Further names are counted together, as "…".
  static constexpr size_t kMaxNames = 64;

  void Count(absl::string_view name);
  // Of the members of an object, if it is one, those that are not `known`;
  // `prefix` goes before their names: "stream_options.".
  template <typename Json>
  void CountOthers(const Json& object, const std::string& prefix,
                   std::initializer_list<absl::string_view> known) {
    if (!object.is_object()) return;
    for (const auto& [name, value] : object.items()) {
      if (!absl::c_linear_search(known, name)) Count(prefix + name);
    }
  }
  std::map<std::string, uint64_t> counts() const;

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, uint64_t> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::openai
