#include "worker/layers/mlp.h"

#include "common/status_macros.h"

namespace lockstep {

absl::Status MlpBlock(const RankContext& rank, const LayerWeights& weights,
                      int tokens, Activations* activations) {
  Activations& a = *activations;
  kernels::Ops& ops = *rank.ops;
  ops.RmsNorm(a.hidden.data(), a.hidden_size, tokens, a.hidden_size,
              weights.mlp_norm.data(), rank.config->norm_eps, a.normed.data(),
              a.hidden_size);
  ops.GatedGemm(weights.gate_up, a.normed.data(), a.hidden_size, tokens,
                a.gate_up.data(), a.activated.data(), a.intermediate);
  ops.Gemm(weights.down, a.activated.data(), a.intermediate, tokens,
           a.delta.data(), a.hidden_size);
  LOCKSTEP_RETURN_IF_ERROR(rank.collective->AllReduceSum(
      {a.delta.data(), static_cast<size_t>(tokens) * a.hidden_size}));
  ops.Add(a.hidden.data(), a.hidden_size, a.delta.data(), a.hidden_size, tokens,
          a.hidden_size);
  return absl::OkStatus();
}

}  // namespace lockstep
