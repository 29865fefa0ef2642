#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json.hpp>
#include <string>

#include "common/gguf_file.h"
#include "worker/model_spec/embedding_config.h"

namespace lockstep {

// What a model's files say of embeddings made with it; an error is why there
// can be none.

// `config` is the folder's config.json. Reads modules.json and what that names,
// where they are.
absl::StatusOr<EmbeddingConfig> ReadEmbeddingFiles(const std::string& folder,
                                                   const nlohmann::json& config,
                                                   int hidden_size);

absl::StatusOr<EmbeddingConfig> EmbeddingConfigOf(const GgufFile& file);

}  // namespace lockstep
