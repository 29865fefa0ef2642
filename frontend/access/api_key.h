#pragma once

#include <cstdint>
#include <string>

#include "common/security/secret.h"

namespace lockstep {

// What the requests of one key may take; 0: no limit of its own.
struct KeyLimits {
  int64_t concurrent_requests = 0;
  int64_t requests_per_minute = 0;
  int64_t tokens_per_minute = 0;  // of prompts and answers
  // No request is more urgent than this, whatever it asks for; lower is more
  // urgent.
  int32_t priority_floor = INT32_MIN;
};

struct ApiKey {
  std::string name;  // fit for a log
  SecretDigest digest;
  KeyLimits limits;
  bool may_drain = false;  // the gateway
};

}  // namespace lockstep
