#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <string>

#include "worker/weights/model_files.h"

namespace lockstep {

// From --quantize, --load_format and --verify_weights. INVALID_ARGUMENT names
// the flag, its value and what it may be.
absl::StatusOr<WeightOptions> WeightOptionsFromFlags();

// --load_timeout. INVALID_ARGUMENT likewise.
absl::StatusOr<absl::Duration> LoadTimeoutFromFlags();

// "--quantize=none …", as the flags say them.
std::string ToString(const WeightOptions& options);

}  // namespace lockstep
