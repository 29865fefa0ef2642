#include "worker/layers/block.h"

#include "common/status_macros.h"

namespace lockstep {

const float* BlockInput(const RankContext& rank, const std::vector<float>& norm,
                        int tokens, Activations* activations) {
  Activations& a = *activations;
  if (norm.empty()) return a.hidden.data();
  rank.ops->RmsNorm(a.hidden.data(), a.hidden_size, tokens, a.hidden_size,
                    norm.data(), rank.config->norm_eps, a.normed.data(),
                    a.hidden_size);
  return a.normed.data();
}

void AddToResidual(const RankContext& rank, const std::vector<float>& norm,
                   int tokens, Activations* activations) {
  Activations& a = *activations;
  if (!norm.empty()) {
    rank.ops->RmsNorm(a.delta.data(), a.hidden_size, tokens, a.hidden_size,
                      norm.data(), rank.config->norm_eps, a.delta.data(),
                      a.hidden_size);
  }
  rank.ops->Add(a.hidden.data(), a.hidden_size, a.delta.data(), a.hidden_size,
                tokens, a.hidden_size, rank.config->residual_scale);
}

absl::Status SumIntoResidual(const RankContext& rank,
                             const std::vector<float>& norm, int tokens,
                             Activations* activations) {
  Activations& a = *activations;
  LOCKSTEP_RETURN_IF_ERROR(rank.collective->AllReduceSum(
      {a.delta.data(), static_cast<size_t>(tokens) * a.hidden_size}));
  AddToResidual(rank, norm, tokens, activations);
  return absl::OkStatus();
}

}  // namespace lockstep
