#include "worker/weights/embedding_files.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include "common/status_macros.h"
#include "common/strict_json.h"
#include "worker/model_spec/gguf_keys.h"
#include "worker/model_spec/gguf_reader.h"

namespace lockstep {

absl::StatusOr<EmbeddingConfig> ReadEmbeddingFiles(const std::string& folder,
                                                   const nlohmann::json& config,
                                                   int hidden_size) {
  EmbeddingConfig embedding;
  LOCKSTEP_RETURN_IF_ERROR(
      ReadMatryoshka(config, folder + "/config.json", hidden_size, &embedding));
  const std::string modules_path = folder + "/modules.json";
  const auto modules = ReadStrictJson(modules_path);
  if (absl::IsNotFound(modules.status())) return embedding;
  LOCKSTEP_RETURN_IF_ERROR(modules.status());
  LOCKSTEP_ASSIGN_OR_RETURN(const auto pooling_folder,
                            ReadModules(*modules, modules_path, &embedding));
  if (!pooling_folder.has_value()) return embedding;
  const std::string pooling_path =
      absl::StrCat(folder, "/", *pooling_folder, "/config.json");
  LOCKSTEP_ASSIGN_OR_RETURN(const auto pooling, ReadStrictJson(pooling_path));
  LOCKSTEP_RETURN_IF_ERROR(ReadPooling(pooling, pooling_path, &embedding));
  return embedding;
}

absl::StatusOr<EmbeddingConfig> EmbeddingConfigOf(const GgufFile& file) {
  // llama.cpp's numbers: include/llama.h, llama_pooling_type.
  constexpr int kNone = 0, kMean = 1, kLast = 3, kRank = 4;
  const GgufReader reader(file);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const int type,
      reader.IntOr(gguf_keys::kPoolingType, kNone, kRank, kLast));
  EmbeddingConfig embedding;
  if (type == kMean) {
    embedding.pooling = EmbeddingConfig::Pooling::kMean;
  } else if (type != kNone && type != kLast) {
    return reader.Unsupported(gguf_keys::kPoolingType,
                              "0 (none), 1 (mean) and 3 (last)");
  }
  return embedding;
}

}  // namespace lockstep
