#pragma once

#include <absl/status/status.h>

#include "frontend/generation/spec.h"
#include "proto/inference.pb.h"

namespace lockstep {

// What a request says its answer must be, and which tools it must call.
// INVALID_ARGUMENT names the field. REQUIRES: the spec has its prompt.
absl::Status ReadStructuredOutput(const v1::GenerateRequest& request,
                                  GenerateSpec* spec);
absl::Status ReadToolChoice(const v1::GenerateRequest& request,
                            GenerateSpec* spec);

}  // namespace lockstep
