#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "tests/goldens/golden_case.h"

namespace lockstep::goldens {

// The cases of a folder, by name: of NAME/ or tiny/NAME/ with
// goldens.{fp32,bf16,quantized}.safetensors, whose models are the folders fp32,
// bf16 and quantized beside them or else fp32.gguf and so on, of the folder
// itself if it is such a NAME, and of its JSON files. README.md describes the
// formats.
//
// `models` is where the model of a JSON file is: a folder of files, or the file
// itself. A case whose model is not there has an empty model_path. NOT_FOUND
// without any case; an error of a file is returned.
absl::StatusOr<std::vector<GoldenCase>> FindGoldens(const std::string& folder,
                                                    const std::string& models);

}  // namespace lockstep::goldens
