#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "worker/runtime/rank_device.h"

namespace lockstep {

// From --device, --gpu_memory_utilization, --steps_in_flight, whether
// --kv_cache_type is auto and whether --collective may be nccl.
// INVALID_ARGUMENT names the flag, its value and what it may be.
absl::StatusOr<DeviceChoice> DeviceChoiceFromFlags();

// "--device=auto …", as the flags say them.
std::string ToString(const DeviceChoice& choice);

}  // namespace lockstep
