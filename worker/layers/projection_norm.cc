#include "worker/layers/projection_norm.h"

#include <algorithm>
#include <cmath>

#include "common/status_macros.h"
#include "kernels/threads/thread_pool.h"

namespace lockstep {
namespace {

constexpr int kTokensPerRange = 4;

// The heads of a projection that a rank is the first to hold: another may hold
// the last of those before, too.
int FirstOwnKvHead(const RankContext& rank) {
  const ModelConfig& config = *rank.config;
  const int per_kv_head = config.num_heads / config.num_kv_heads;
  return (rank.shard->head_begin + per_kv_head - 1) / per_kv_head;
}

// x[i]·weight[i] / √(Σ squares / count + eps).
void NormPart(const float* squares, int heads, int head_dim, float eps,
              const std::vector<float>& weight, float* x) {
  float sum = 0;
  for (int head = 0; head < heads; ++head) sum += squares[head];
  const float mean = sum / static_cast<float>(heads * head_dim);
  const float scale = 1.0f / std::sqrt(mean + eps);
  for (size_t i = 0; i < weight.size(); ++i) x[i] = x[i] * scale * weight[i];
}

}  // namespace

absl::Status NormProjections(const RankContext& rank,
                             const LayerWeights& weights, int tokens,
                             Activations* activations) {
  Activations& a = *activations;
  const ModelConfig& config = *rank.config;
  const Shard& shard = *rank.shard;
  const int heads = config.num_heads, kv_heads = config.num_kv_heads;
  const ptrdiff_t row = heads + kv_heads;
  const ptrdiff_t qkv_row = a.q_size + 2 * a.kv_size;
  float* squares = a.head_squares.data();
  std::fill_n(squares, tokens * row, 0.0f);
  rank.ops->HeadSquares(a.qkv.data(), qkv_row, tokens, shard.num_heads(),
                        config.head_dim, squares + shard.head_begin, row);
  const int first = FirstOwnKvHead(rank);
  const int skipped = (first - shard.kv_head_begin) * config.head_dim;
  rank.ops->HeadSquares(a.qkv.data() + a.q_size + skipped, qkv_row, tokens,
                        std::max(shard.kv_head_end - first, 0), config.head_dim,
                        squares + heads + first, row);
  LOCKSTEP_RETURN_IF_ERROR(rank.collective->AllReduceSum(
      {squares, static_cast<size_t>(tokens * row)}));
  const auto norm = [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      float* q = a.qkv.data() + token * qkv_row;
      const float* sums = squares + token * row;
      NormPart(sums, heads, config.head_dim, config.norm_eps, weights.q_norm,
               q);
      NormPart(sums + heads, kv_heads, config.head_dim, config.norm_eps,
               weights.k_norm, q + a.q_size);
    }
  };
  rank.ops->pool().For(tokens, kTokensPerRange, norm);
  return absl::OkStatus();
}

}  // namespace lockstep
