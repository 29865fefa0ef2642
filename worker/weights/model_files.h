#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/weights/dtype.h"
#include "worker/checkpoint/tensor_source.h"
#include "worker/model_spec/embedding_config.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"
#include "worker/weights/content_digest.h"

namespace lockstep {

// What the weights of a model are, besides what its files say.
struct WeightOptions {
  // Matrices of floats are rounded to it; absent: as they are stored.
  std::optional<kernels::DType> rounded_to = {};  // Q8_0 or Q4_0
  // Not those of its files, which need not be there, but random ones.
  bool random = false;
  // Every byte of them is read, for ModelFiles::content.
  bool verified = false;
};

// A model on disk: what it is, and its tensors.
struct ModelFiles {
  ModelConfig config;
  std::unique_ptr<TensorSource> tensors;
  RowParallelBlocks row_parallel_blocks;
  // Hash over names, shapes, types and sampled content of the stored tensors,
  // and the config; see Fingerprint.
  std::string fingerprint;
  std::vector<std::string> weight_types;  // most elements first
  ContentDigest content;                  // where the options ask for it
  // Of embeddings made with it; an error says why there are none.
  absl::StatusOr<EmbeddingConfig> embedding = EmbeddingConfig();
};

// `path` is a Hugging Face folder or a .gguf file. Every tensor that the model
// needs is known to be there, in its shape, afterwards. An error is one
// sentence that names the file and what in it is missing, wrong or not
// supported. For sequences of up to `max_context` tokens, 0: of as many as the
// model was made for; it matters where rope follows it (rope_length.h).
//
//   LOCKSTEP_ASSIGN_OR_RETURN(ModelFiles model, OpenModel("model.gguf"));
absl::StatusOr<ModelFiles> OpenModel(const std::string& path,
                                     int max_context = 0,
                                     const WeightOptions& options = {});

}  // namespace lockstep
