#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <nlohmann/json.hpp>
#include <string>

#include "worker/model_spec/model_config.h"

namespace lockstep {

// From a Hugging Face config.json, old style (rope_theta, rope_scaling) or new
// (rope_parameters). `path` is for messages. UNIMPLEMENTED names an
// architecture or an option that is not supported and the ones that are;
// INVALID_ARGUMENT names a key that is missing or makes no sense.
absl::StatusOr<ModelConfig> ConfigFromHuggingFace(const nlohmann::json& config,
                                                  const std::string& path);

// Adds the end-of-sequence ids of a generation_config.json: chat models often
// have their end-of-turn id only there.
absl::Status MergeGenerationConfig(const nlohmann::json& generation_config,
                                   const std::string& path,
                                   ModelConfig* config);

}  // namespace lockstep
