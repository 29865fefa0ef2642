#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "tests/goldens/golden_case.h"

namespace lockstep::goldens {

// Reads goldens.DTYPE.safetensors; the prompts of a case, p0, p1, … The error
// names file, tensor and what is wrong with it.
absl::StatusOr<std::vector<GoldenPrompt>> ReadTensorGoldens(
    const std::string& path);

}  // namespace lockstep::goldens
