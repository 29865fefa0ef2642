#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "worker/model_spec/model_config.h"
#include "worker/weights/tensor_source.h"

namespace lockstep {

// Tells models apart: a digest, in hex, over the config and each tensor's name,
// shape, type, size and some of its bytes (both ends and a few places between,
// so that a file of any size takes moments). Other models have other
// fingerprints. A file that was damaged elsewhere than in these bytes has the
// same: whoever copies files compares their checksums.
absl::StatusOr<std::string> Fingerprint(const ModelConfig& config,
                                        const TensorSource& source);

}  // namespace lockstep
