#include "frontend/openai/unknown_fields.h"

#include <absl/strings/escaping.h>
#include <glog/logging.h>

namespace lockstep::openai {
namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr char kOthers[] = "…";

}  // namespace

void UnknownFields::Count(absl::string_view name) {
  std::string key = absl::CHexEscape(name.substr(0, kMaxNameBytes));
  absl::MutexLock lock(&mutex_);
  if (counts_.count(key) == 0) {
    if (counts_.size() >= kMaxNames) {
      key = kOthers;
    } else {
      LOG(INFO) << "clients send the field \"" << key
                << "\", which is not known here and has no effect";
    }
  }
  ++counts_[key];
}

std::map<std::string, uint64_t> UnknownFields::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

}  // namespace lockstep::openai
