#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// How the hidden states of a model become an embedding, where a request does
// not say it. Without any file that tells more: the last token's, normalized.
struct EmbeddingConfig {
  enum class Pooling { kLastToken, kMean };

  Pooling pooling = Pooling::kLastToken;
  bool normalize = true;
  // Whether the first values alone are an embedding too: so many as one likes,
  // or one of these numbers.
  bool any_dimensions = false;
  std::vector<int> fewer_dimensions = {};
};

// Reads the files that sentence-transformers puts into a model's folder, and
// those of its config.json that vLLM knows of embeddings.
//
//   EmbeddingConfig embedding;
//   ReadMatryoshka(config, "model/config.json", hidden_size, &embedding);
//   auto folder = ReadModules(modules, "model/modules.json", &embedding);
//   if (folder->has_value()) ReadPooling(pooling, "…/config.json", &embedding);
//
// INVALID_ARGUMENT or UNIMPLEMENTED names path, field and value.

// is_matryoshka, matryoshka_dimensions.
absl::Status ReadMatryoshka(const nlohmann::json& config,
                            const std::string& path, int hidden_size,
                            EmbeddingConfig* embedding);

// Returns the folder, below the model's, of the module that pools.
absl::StatusOr<std::optional<std::string>> ReadModules(
    const nlohmann::json& modules, const std::string& path,
    EmbeddingConfig* embedding);

absl::Status ReadPooling(const nlohmann::json& pooling, const std::string& path,
                         EmbeddingConfig* embedding);

}  // namespace lockstep
