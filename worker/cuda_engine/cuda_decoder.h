#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/cuda_types.h"
#include "kernels/cuda/paged_batch.h"
#include "worker/collectives/nccl_collective.h"
#include "worker/cuda_engine/cuda_experts.h"
#include "worker/cuda_engine/device_activations.h"
#include "worker/cuda_engine/device_product.h"
#include "worker/cuda_engine/staged_batch.h"
#include "worker/cuda_engine/weights/device_matrix.h"
#include "worker/cuda_engine/weights/device_weights.h"
#include "worker/device/cuda_stream.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"

namespace lockstep {

// Cosines and sines of each position, in device memory; see RopeTable.
struct DeviceRope {
  const float* cos = nullptr;  // [positions, rotary_dim / 2]
  const float* sin = nullptr;
};

// Of a model's layers; `local` of those with local_rope.
struct DeviceRopes {
  DeviceRope usual;
  DeviceRope local;
};

// A decoder-only transformer as its config describes it, on a device: one
// rank's part of the forward pass as a list of kernels on one stream. T is what
// products read, float or BFloat16, and of what keys and values are kept.
//
//   LOCKSTEP_RETURN_IF_ERROR(decoder.Launch(batch, num_logits, kv));
//
// Kernels run after it returns, and so do the exchanges of several ranks:
// 2·layers + 1 all-reduces, a layer one more where whole projections are
// normed, and, if any token wants logits, one all-gather. An error names the
// kernel and the device, or is the collective's. The logits of a token are a
// function of its sequence up to it alone. Used by the engine's thread.
template <typename T>
class CudaDecoder {
 public:
  // All of it outlives the decoder. `collective` is null for one rank.
  struct Parts {
    const ModelConfig* config = nullptr;
    const Shard* shard = nullptr;
    const DeviceWeights* weights = nullptr;
    const DeviceActivations<T>* activations = nullptr;
    DeviceRopes rope;
    CudaStream* stream = nullptr;
    NcclCollective* collective = nullptr;
  };

  explicit CudaDecoder(const Parts& parts)
      : parts_(parts),
        experts_(parts.config, parts.shard, parts.activations, parts.stream) {}

  // The batch's keys and values go to the pages of each layer, kv [layers].
  // Afterwards the activations have the logits of the batch's logits_tokens,
  // `num_logits` rows, and the best id of each, or kNoFiniteLogit.
  absl::Status Launch(const StagedBatch& batch, int num_logits,
                      absl::Span<const cuda::PagedKv<T>> kv);

  // The hidden states of all tokens of the last Launch after the last norm, to
  // activations.delta.
  absl::Status LaunchHiddenStates(int num_tokens);

  // Floats from a row of logits to the next.
  int logits_stride() const {
    return parts_.shard->size * parts_.shard->vocab_rows;
  }
  float* logits() const {
    return parts_.shard->size == 1 ? parts_.activations->gathered
                                   : parts_.activations->logits;
  }

 private:
  absl::Status Embed(const StagedBatch& batch);
  absl::Status Attention(const LayerConfig& layer, const DeviceLayer& weights,
                         const StagedBatch& batch, const cuda::PagedKv<T>& kv);
  absl::Status NormProjections(const DeviceLayer& weights, int tokens);
  absl::Status Mlp(const DeviceLayer& weights, int tokens);
  // hidden += post_norm(delta), delta of all ranks, and normed = norm(hidden);
  // a norm that the model lacks is null.
  absl::Status AddAndNorm(const float* post_norm, const float* norm,
                          int tokens);
  absl::Status Head(const int32_t* tokens, int rows);
  absl::Status FinishLogits(float* logits, size_t count);
  absl::Status Sum(float* data, size_t count);

  template <typename Y>
  absl::Status Multiply(const DeviceMatrix& matrix, const float* bias,
                        const T* x, int count, Y* y) const {
    return LaunchProduct(matrix, bias, x, count, y, parts_.stream);
  }
  absl::Status Check(cuda::CudaError launched, absl::string_view kernel) const {
    return parts_.stream->device().Check(launched, kernel);
  }

  const Parts parts_;
  CudaExperts<T> experts_;
};

}  // namespace lockstep
