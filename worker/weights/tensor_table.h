#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/checkpoint/tensor_source.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"

namespace lockstep {

// A tensor that a model must have, by Hugging Face's name.
struct TensorSpec {
  std::string name;
  std::vector<int64_t> shape;
  // Of a router: multiplied in strict arithmetic whatever the others are, as a
  // rounding may pick another expert.
  bool routes = false;
  // Of one that is cut along its columns: the blocks that its own is among.
  int RowParallelBlocks::*cut = nullptr;
};

inline constexpr char kEmbeddingName[] = "model.embed_tokens.weight";
inline constexpr char kFinalNormName[] = "model.norm.weight";
inline constexpr char kHeadName[] = "lm_head.weight";

// Calls `visit` with every tensor that `config` asks for, until it returns an
// error, and returns that. A config of a few bytes can ask for millions: they
// are made one at a time.
absl::Status VisitTensors(
    const ModelConfig& config,
    absl::FunctionRef<absl::Status(const TensorSpec&)> visit);

// All of them, of a model that is known to have them.
std::vector<TensorSpec> ExpectedTensors(const ModelConfig& config);

// Whether `source` has these in their shapes, and no others but a few that are
// known to be of no use: INVALID_ARGUMENT names file, tensor, expected and
// found. Takes no more memory than the names that `source` has.
absl::Status CheckTensors(const TensorSource& source,
                          const ModelConfig& config);

}  // namespace lockstep
