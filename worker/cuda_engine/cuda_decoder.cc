#include "worker/cuda_engine/cuda_decoder.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/status_macros.h"
#include "kernels/cuda/activation.h"
#include "kernels/cuda/argmax.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/gather.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/rotary.h"

namespace lockstep {

template <typename T>
absl::Status CudaDecoder<T>::Launch(const StagedBatch& batch, int num_logits,
                                    absl::Span<const cuda::PagedKv<T>> kv) {
  const ModelConfig& config = *parts_.config;
  const DeviceActivations<T>& a = *parts_.activations;
  const std::vector<DeviceLayer>& layers = parts_.weights->layers;
  const int tokens = batch.paged().num_tokens;
  LOCKSTEP_RETURN_IF_ERROR(Embed(batch));
  LOCKSTEP_RETURN_IF_ERROR(
      Check(cuda::RmsNorm<float, T>(
                {a.hidden, layers[0].attention_norm, config.norm_eps, a.normed,
                 tokens, config.hidden_size},
                parts_.stream->handle()),
            "RmsNorm"));
  for (int i = 0; i < config.num_layers; ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        Attention(config.layers[i], layers[i], batch, kv[i]));
    LOCKSTEP_RETURN_IF_ERROR(
        AddAndNorm(layers[i].attention_post_norm, layers[i].mlp_norm, tokens));
    LOCKSTEP_RETURN_IF_ERROR(config.layers[i].has_experts
                                 ? experts_.Launch(layers[i], tokens)
                                 : Mlp(layers[i], tokens));
    LOCKSTEP_RETURN_IF_ERROR(AddAndNorm(layers[i].mlp_post_norm,
                                        i + 1 < config.num_layers
                                            ? layers[i + 1].attention_norm
                                            : parts_.weights->final_norm,
                                        tokens));
  }
  return num_logits == 0 ? absl::OkStatus()
                         : Head(batch.logits_tokens(), num_logits);
}

template <typename T>
absl::Status CudaDecoder<T>::Embed(const StagedBatch& batch) {
  float* const hidden = parts_.activations->hidden;
  const int tokens = batch.paged().num_tokens;
  LOCKSTEP_RETURN_IF_ERROR(
      Check(cuda::Embed({parts_.weights->embedding,
                         static_cast<uint32_t>(parts_.shard->vocab_begin),
                         parts_.config->embedding_scale},
                        {batch.token_ids(), parts_.activations->best_ids},
                        tokens, hidden, parts_.stream->handle()),
            "Embed"));
  return Sum(hidden, size_t{1} * tokens * parts_.config->hidden_size);
}

template <typename T>
absl::Status CudaDecoder<T>::Attention(const LayerConfig& layer,
                                       const DeviceLayer& weights,
                                       const StagedBatch& batch,
                                       const cuda::PagedKv<T>& kv) {
  const ModelConfig& config = *parts_.config;
  const DeviceActivations<T>& a = *parts_.activations;
  const int heads = parts_.shard->num_heads();
  const ptrdiff_t qkv_size = a.q_size + 2 * a.kv_size;
  const int tokens = batch.paged().num_tokens;
  const cuda::Stream stream = parts_.stream->handle();
  const RopeConfig& rope = layer.local_rope ? config.local_rope : config.rope;
  const DeviceRope& angles =
      layer.local_rope ? parts_.rope.local : parts_.rope.usual;
  LOCKSTEP_RETURN_IF_ERROR(
      Multiply(weights.qkv, weights.qkv_bias, a.normed, tokens, a.qkv));
  if (config.projection_norm) {
    LOCKSTEP_RETURN_IF_ERROR(NormProjections(weights, tokens));
  }
  LOCKSTEP_RETURN_IF_ERROR(
      Check(cuda::RotateAndStoreKv<T>(
                {.qkv = a.qkv,
                 .stride = qkv_size,
                 .heads = heads,
                 .q_norm = config.qk_norm ? weights.q_norm : nullptr,
                 .k_norm = config.qk_norm ? weights.k_norm : nullptr,
                 .eps = config.norm_eps,
                 .style = rope.style,
                 .rotary_dim = layer.has_rope ? rope.rotary_dim : 0,
                 .cos = angles.cos,
                 .sin = angles.sin},
                batch.paged(), kv, stream),
            "RotateAndStoreKv"));
  LOCKSTEP_RETURN_IF_ERROR(Check(
      cuda::Attend<T>({.q = a.qkv,
                       .q_stride = qkv_size,
                       .heads = heads,
                       .scale = config.query_scale,
                       .window = layer.window,
                       .soft_cap = config.score_cap,
                       .out = a.attention,
                       .out_stride = a.q_size},
                      batch.paged(), kv, batch.attention(layer.window), stream),
      "Attend"));
  return Multiply(weights.o, nullptr, a.attention, tokens, a.delta);
}

// Of all of q and of all of k, whose heads lie on several ranks: these exchange
// the heads' sums of squares.
template <typename T>
absl::Status CudaDecoder<T>::NormProjections(const DeviceLayer& weights,
                                             int tokens) {
  const ModelConfig& config = *parts_.config;
  const Shard& shard = *parts_.shard;
  const DeviceActivations<T>& a = *parts_.activations;
  const cuda::Stream stream = parts_.stream->handle();
  const ptrdiff_t qkv_size = a.q_size + 2 * a.kv_size;
  const int heads = config.num_heads, kv_heads = config.num_kv_heads;
  // Of a key head that several ranks hold the first counts it.
  const bool counts_keys =
      shard.head_begin == shard.kv_head_begin * (heads / kv_heads);
  LOCKSTEP_RETURN_IF_ERROR(Check(
      cuda::HeadSquares<T>(a.qkv, qkv_size, tokens, config.head_dim,
                           {.heads = heads,
                            .first = shard.head_begin,
                            .count = shard.num_heads(),
                            .offset = 0},
                           {.heads = kv_heads,
                            .first = shard.kv_head_begin,
                            .count = counts_keys ? shard.num_kv_heads() : 0,
                            .offset = a.q_size},
                           a.head_squares, stream),
      "HeadSquares"));
  const ptrdiff_t row = heads + kv_heads;
  LOCKSTEP_RETURN_IF_ERROR(Sum(a.head_squares, tokens * row));
  const auto norm = [&](T* x, int count, const float* weight,
                        const float* squares, int of_heads) {
    return Check(cuda::NormPart<T>({.x = x,
                                    .stride = qkv_size,
                                    .rows = tokens,
                                    .count = count,
                                    .weight = weight,
                                    .squares = squares,
                                    .squares_stride = row,
                                    .heads = of_heads,
                                    .head_dim = config.head_dim,
                                    .eps = config.norm_eps},
                                   stream),
                 "NormPart");
  };
  LOCKSTEP_RETURN_IF_ERROR(
      norm(a.qkv, a.q_size, weights.q_norm, a.head_squares, heads));
  return norm(a.qkv + a.q_size, a.kv_size, weights.k_norm,
              a.head_squares + heads, kv_heads);
}

template <typename T>
absl::Status CudaDecoder<T>::Mlp(const DeviceLayer& weights, int tokens) {
  const DeviceActivations<T>& a = *parts_.activations;
  LOCKSTEP_RETURN_IF_ERROR(
      Multiply(weights.gate_up, nullptr, a.normed, tokens, a.gate_up));
  LOCKSTEP_RETURN_IF_ERROR(
      Check(cuda::GatedMul<T>(parts_.config->gate, a.gate_up, tokens,
                              parts_.shard->mlp.size(), a.activated,
                              parts_.stream->handle()),
            "GatedMul"));
  return Multiply(weights.down, nullptr, a.activated, tokens, a.delta);
}

template <typename T>
absl::Status CudaDecoder<T>::AddAndNorm(const float* post_norm,
                                        const float* norm, int tokens) {
  const ModelConfig& config = *parts_.config;
  const DeviceActivations<T>& a = *parts_.activations;
  const cuda::Stream stream = parts_.stream->handle();
  LOCKSTEP_RETURN_IF_ERROR(
      Sum(a.delta, size_t{1} * tokens * config.hidden_size));
  if (post_norm != nullptr) {
    LOCKSTEP_RETURN_IF_ERROR(
        Check(cuda::RmsNorm<float, float>({a.delta, post_norm, config.norm_eps,
                                           a.delta, tokens, config.hidden_size},
                                          stream),
              "RmsNorm"));
  }
  return Check(
      cuda::AddRmsNorm<float, T>(a.hidden, config.residual_scale,
                                 {a.delta, norm, config.norm_eps, a.normed,
                                  tokens, config.hidden_size},
                                 stream),
      "AddRmsNorm");
}

// Each rank computes its rows of the vocabulary. The columns that pad the last
// rank's are whatever was there, and in no row's vocabulary.
template <typename T>
absl::Status CudaDecoder<T>::Head(const int32_t* tokens, int rows) {
  const ModelConfig& config = *parts_.config;
  const Shard& shard = *parts_.shard;
  const DeviceActivations<T>& a = *parts_.activations;
  const cuda::Stream stream = parts_.stream->handle();
  const size_t own_size = size_t{1} * rows * shard.vocab_rows;
  float* const own = a.gathered + shard.rank * own_size;
  LOCKSTEP_RETURN_IF_ERROR(
      Check(cuda::GatherRows<T>(a.normed, tokens, rows, config.hidden_size,
                                a.head_input, stream),
            "GatherRows"));
  LOCKSTEP_RETURN_IF_ERROR(LaunchProduct(parts_.weights->head, a.head_input,
                                         rows, own, shard.vocab_rows,
                                         parts_.stream));
  LOCKSTEP_RETURN_IF_ERROR(FinishLogits(own, own_size));
  if (shard.size > 1) {
    LOCKSTEP_RETURN_IF_ERROR(parts_.collective->EnqueueAllGather(
        {own, own_size}, {a.gathered, own_size * shard.size}));
    LOCKSTEP_RETURN_IF_ERROR(
        Check(cuda::JoinShards(a.gathered, shard.size, rows, shard.vocab_rows,
                               a.logits, stream),
              "JoinShards"));
  }
  return Check(cuda::ArgMax(logits(), logits_stride(), rows, config.vocab_size,
                            a.best_ids, stream),
               "ArgMax");
}

template <typename T>
absl::Status CudaDecoder<T>::FinishLogits(float* logits, size_t count) {
  const ModelConfig& config = *parts_.config;
  if (config.logit_divisor == 1 && config.logit_cap == 0) {
    return absl::OkStatus();
  }
  return Check(cuda::ScaleAndCap(logits, count, 1 / config.logit_divisor,
                                 config.logit_cap, parts_.stream->handle()),
               "ScaleAndCap");
}

template <typename T>
absl::Status CudaDecoder<T>::LaunchHiddenStates(int num_tokens) {
  const ModelConfig& config = *parts_.config;
  const DeviceActivations<T>& a = *parts_.activations;
  return Check(cuda::RmsNorm<float, float>(
                   {a.hidden, parts_.weights->final_norm, config.norm_eps,
                    a.delta, num_tokens, config.hidden_size},
                   parts_.stream->handle()),
               "RmsNorm");
}

template <typename T>
absl::Status CudaDecoder<T>::Sum(float* data, size_t count) {
  if (parts_.shard->size == 1) return absl::OkStatus();
  return parts_.collective->EnqueueAllReduceSum({data, count});
}

template class CudaDecoder<float>;
template class CudaDecoder<cuda::BFloat16>;

}  // namespace lockstep
