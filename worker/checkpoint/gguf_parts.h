#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <vector>

#include "common/gguf_file.h"

namespace lockstep {

// The other files of a model in several parts, as llama.cpp's gguf-split writes
// it: "m-00002-of-00003.gguf" and so on, beside `first`, which has the metadata
// of all. None where it is all of the model. INVALID_ARGUMENT names the file
// that is no part of it, or not the one that its name says; NOT_FOUND the one
// that is missing.
absl::StatusOr<std::vector<std::unique_ptr<GgufFile>>> OpenOtherParts(
    const GgufFile& first);

}  // namespace lockstep
