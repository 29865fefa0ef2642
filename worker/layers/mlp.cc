#include "worker/layers/mlp.h"

#include "worker/layers/block.h"

namespace lockstep {

void MultiplyMlp(const RankContext& rank, const MlpWeights& weights,
                 int intermediate, const float* input, int tokens,
                 Activations* activations, float* output) {
  Activations& a = *activations;
  rank.ops->GatedGemm(weights.gate_up, rank.config->gate, input, a.hidden_size,
                      tokens, a.gate_up.data(), a.activated.data(),
                      intermediate);
  rank.ops->Gemm(weights.down, a.activated.data(), intermediate, tokens, output,
                 a.hidden_size);
}

absl::Status MlpBlock(const RankContext& rank, const LayerWeights& weights,
                      int tokens, Activations* activations) {
  const float* input = BlockInput(rank, weights.mlp_norm, tokens, activations);
  MultiplyMlp(rank, weights.mlp, rank.shard->mlp.size(), input, tokens,
              activations, activations->delta.data());
  return SumIntoResidual(rank, weights.mlp_post_norm, tokens, activations);
}

}  // namespace lockstep
