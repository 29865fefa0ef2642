#include "worker/layers/mlp.h"

#include "common/status_macros.h"
#include "worker/layers/block.h"

namespace lockstep {

absl::Status MlpBlock(const RankContext& rank, const LayerWeights& weights,
                      int tokens, Activations* activations) {
  Activations& a = *activations;
  const int intermediate = rank.shard->mlp.size();
  const float* input = BlockInput(rank, weights.mlp_norm, tokens, activations);
  rank.ops->GatedGemm(weights.mlp.gate_up, rank.config->gate, input,
                      a.hidden_size, tokens, a.gate_up.data(),
                      a.activated.data(), intermediate);
  rank.ops->Gemm(weights.mlp.down, a.activated.data(), intermediate, tokens,
                 a.delta.data(), a.hidden_size);
  LOCKSTEP_RETURN_IF_ERROR(rank.collective->AllReduceSum(
      {a.delta.data(), static_cast<size_t>(tokens) * a.hidden_size}));
  AddToResidual(rank, weights.mlp_post_norm, tokens, activations);
  return absl::OkStatus();
}

}  // namespace lockstep
