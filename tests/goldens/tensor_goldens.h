#pragma once

#include <absl/status/status.h>

#include <string>

#include "tests/goldens/golden_case.h"

namespace lockstep::goldens {

// Reads goldens.DTYPE.safetensors: the prompts of a case, p0, p1, …, and its
// max_context. The error names file, tensor and what is wrong with it.
absl::Status ReadTensorGoldens(const std::string& path, GoldenCase* golden);

}  // namespace lockstep::goldens
