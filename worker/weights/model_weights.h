#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/threads/thread_pool.h"
#include "kernels/weights/arithmetic.h"
#include "kernels/weights/dtype.h"
#include "kernels/weights/packed_matrix.h"
#include "kernels/weights/weight_arena.h"
#include "worker/checkpoint/tensor_source.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"

namespace lockstep {

// One rank's slice of an MLP.
struct MlpWeights {
  kernels::PackedMatrix gate_up;  // [2·intermediate, hidden]
  kernels::PackedMatrix down;     // [hidden, intermediate]
};

// Of a mixture of experts: the rank's slices, all of the router.
struct ExpertsWeights {
  kernels::PackedMatrix router;       // [num_experts, hidden], strict
  std::vector<float> choice_bias;     // [num_experts], where there is one
  std::vector<MlpWeights> experts;    // from the shard's expert_begin on
  MlpWeights shared;                  // no rows where there is none
  kernels::PackedMatrix shared_gate;  // [1, hidden], strict; the same
};

// One rank's slice of a decoder layer. What the architecture lacks is empty.
struct LayerWeights {
  std::vector<float> attention_norm;       // [hidden]
  std::vector<float> attention_post_norm;  // [hidden]
  kernels::PackedMatrix qkv;    // [(heads + 2·kv_heads)·head_dim, hidden]
  std::vector<float> qkv_bias;  // a value for each row
  std::vector<float> q_norm;    // [head_dim], or [heads·head_dim] of all of q
  std::vector<float> k_norm;    // the same of k
  kernels::PackedMatrix o;      // [hidden, heads·head_dim]
  std::vector<float> mlp_norm;  // [hidden]
  std::vector<float> mlp_post_norm;  // [hidden]
  MlpWeights mlp;                    // or
  ExpertsWeights experts;
};

// One rank's weights. The embedding is read where it is mapped, if it is, so
// the source must outlive this.
struct ModelWeights {
  // Rows vocab_begin … of the embedding as stored; ids past the vocabulary have
  // no row.
  kernels::DType embedding_type = kernels::DType::kF32;
  const uint8_t* embedding = nullptr;  // row 0 of this rank
  size_t embedding_row_bytes = 0;
  int embedding_rows = 0;  // of this rank, without padding

  kernels::WeightArena arena;  // of the matrices
  std::vector<LayerWeights> layers;
  std::vector<float> final_norm;  // [hidden]
  // [vocab_rows without padding, hidden]; this rank's rows of the head, if the
  // model has one.
  kernels::PackedMatrix head;
};

// Called after each layer: how many are loaded, and how many there are.
using LayerLoaded = std::function<void(int loaded, int layers)>;

// Reads and packs what `shard` holds for products in `arithmetic`, one tensor
// at a time on the threads of `pool` (null: on the calling one); only the pages
// of the file that hold it are touched, and given back layer by layer. A
// missing tensor or a wrong shape is INVALID_ARGUMENT naming file, tensor,
// expected and found. REQUIRES: `shard` was made with the row_parallel_blocks
// of the same files.
absl::StatusOr<ModelWeights> LoadWeights(
    const TensorSource& source, const ModelConfig& config, const Shard& shard,
    kernels::Arithmetic arithmetic = kernels::Arithmetic::kStrict,
    kernels::ThreadPool* pool = nullptr, const LayerLoaded& on_layer = nullptr);

// Bytes of all packed matrices of a model, which its ranks share; an estimate
// for one rank is their part of it. The source holds what `config` asks for.
int64_t PackedBytes(const TensorSource& source, const ModelConfig& config,
                    kernels::Arithmetic arithmetic);

}  // namespace lockstep
