// Whatever the text: keys with names fit for a log and limits within bounds, or
// one line's sentence.

#include <absl/strings/match.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "common/request_id.h"
#include "frontend/access/api_key_file.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto keys = lockstep::ParseApiKeys(text);
  if (!keys.ok()) {
    Require(absl::IsInvalidArgument(keys.status()));
    Require(absl::StrContains(keys.status().message(), "--api_keys_file"));
    return 0;
  }
  Require(!keys->empty() && keys->size() <= lockstep::kMostApiKeys);
  for (const lockstep::ApiKey& key : *keys) {
    Require(lockstep::CheckRequestId("", key.name).ok());
    Require(key.limits.concurrent_requests >= 0);
    Require(key.limits.priority_floor <= 100);
  }
  return 0;
}
