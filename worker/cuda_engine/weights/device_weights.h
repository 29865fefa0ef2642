#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/product_args.h"
#include "worker/checkpoint/tensor_source.h"
#include "worker/cuda_engine/weights/device_matrix.h"
#include "worker/device/cuda_stream.h"
#include "worker/device/device_arena.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"

namespace lockstep {

// Of a mixture of experts: the rank's slices, all of the router; null where the
// model has none.
struct DeviceExperts {
  cuda::StoredMatrix router;           // [num_experts, hidden]
  const float* choice_bias = nullptr;  // [num_experts]
  // Of the rank's experts: a part is that of the first one, below which those
  // of the others lie. Where an expert's is of another type than the first's,
  // all are decoded to F32.
  DeviceMatrix gate_up;  // [2·intermediate, hidden]
  DeviceMatrix down;     // [hidden, intermediate]
  // Of the expert that all tokens go through.
  DeviceMatrix shared_gate_up;
  DeviceMatrix shared_down;
  cuda::StoredMatrix shared_gate;  // [1, hidden]
};

// One rank's slice of a decoder layer; null where the model has none.
struct DeviceLayer {
  const float* attention_norm = nullptr;       // [hidden]
  const float* attention_post_norm = nullptr;  // [hidden]
  DeviceMatrix qkv;                 // [(heads + 2·kv_heads)·head_dim, hidden]
  const float* qkv_bias = nullptr;  // a value for each row
  const float* q_norm = nullptr;    // [head_dim], or [heads·head_dim] of all q
  const float* k_norm = nullptr;    // the same of k
  DeviceMatrix o;                   // [hidden, heads·head_dim]
  const float* mlp_norm = nullptr;  // [hidden]
  const float* mlp_post_norm = nullptr;  // [hidden]
  DeviceMatrix gate_up;                  // [2·intermediate, hidden]
  DeviceMatrix down;                     // [hidden, intermediate]
  DeviceExperts experts;                 // in the place of these two
};

// One rank's weights in device memory: matrices as they are stored, vectors in
// fp32. A head that is the embedding lies there once.
struct DeviceWeights {
  std::unique_ptr<DeviceArena> arena;
  cuda::StoredMatrix embedding;  // rows vocab_begin …, without padding
  std::vector<DeviceLayer> layers;
  const float* final_norm = nullptr;  // [hidden]
  cuda::StoredMatrix head;            // as the embedding's rows
};

// Copies what `shard` holds to the stream's device, a few rows at a time: on
// the host they take no more than two buffers of page-locked memory, and the
// mapped pages of one tensor. A missing tensor or a wrong shape is
// INVALID_ARGUMENT as LoadWeights has it. REQUIRES: CheckCudaModel(config,
// shard) is OK.
absl::StatusOr<std::unique_ptr<DeviceWeights>> LoadDeviceWeights(
    const TensorSource& source, const ModelConfig& config, const Shard& shard,
    CudaStream* stream);

// Bytes that they take.
absl::StatusOr<int64_t> DeviceWeightBytes(const TensorSource& source,
                                          const ModelConfig& config,
                                          const Shard& shard);

}  // namespace lockstep
