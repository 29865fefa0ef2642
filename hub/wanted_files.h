#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <string>
#include <vector>

#include "hub/model_name.h"

namespace lockstep {

// What of a model someone needs.
enum class ModelPart {
  kAll,
  kText,  // to encode, decode and render; of a GGUF file that is all of it
};

struct WantedFiles {
  std::vector<std::string> names;
  // What a program opens: a file, the first of several that are one; empty: the
  // folder.
  std::string entry;
};

// Out of the files of a repository: those of a folder with config.json that
// describe a model and its text, and its safetensors; or a GGUF file, which
// model.file names, or which is the only one. NOT_FOUND says what there is
// instead.
absl::StatusOr<WantedFiles> ChooseFiles(const HubModel& model,
                                        absl::Span<const std::string> files,
                                        ModelPart part);

}  // namespace lockstep
