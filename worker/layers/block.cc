#include "worker/layers/block.h"

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

}  // namespace lockstep
