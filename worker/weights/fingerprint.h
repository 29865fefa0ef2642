#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "worker/model_spec/model_config.h"
#include "worker/weights/tensor_source.h"

namespace lockstep {

// Tells models apart: a digest, in hex, over the config and each tensor's name,
// shape, type, size and some of its bytes (both ends and a few places between,
// so that a file of any size takes moments). Ranks with the same fingerprint
// hold the same model, but for a file made to deceive.
absl::StatusOr<std::string> Fingerprint(const ModelConfig& config,
                                        const TensorSource& source);

}  // namespace lockstep
