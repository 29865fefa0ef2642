#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "tests/goldens/golden_case.h"

namespace lockstep::goldens {

// The cases of a folder, by name: of NAME/ or tiny/NAME/ with
// goldens.{fp32,bf16}.safetensors, of the folder itself if it is such a NAME,
// and of its JSON files. README.md describes the formats.
//
// `default_model` is a file of the name that a JSON file asks for, or empty:
// then the case's model_path is empty, too. NOT_FOUND without any case; an
// error of a file is returned.
absl::StatusOr<std::vector<GoldenCase>> FindGoldens(
    const std::string& folder, const std::string& default_model);

}  // namespace lockstep::goldens
