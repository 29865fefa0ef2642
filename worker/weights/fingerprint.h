#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>

#include "worker/checkpoint/tensor_source.h"
#include "worker/model_spec/model_config.h"

namespace lockstep {

// Tells models apart: a digest, in hex, over the config, `format` (what decides
// the weights besides the tensors) and each stored tensor's name, shape, type,
// size and some of its bytes (both ends and a few places between, so that a
// file of any size takes moments). Other models have other fingerprints. A file
// that was damaged elsewhere than in these bytes has the same: whoever copies
// files compares their checksums.
absl::StatusOr<std::string> Fingerprint(const ModelConfig& config,
                                        absl::string_view format,
                                        const TensorSource& stored);

}  // namespace lockstep
