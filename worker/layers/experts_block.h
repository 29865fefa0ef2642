#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <vector>

#include "kernels/expert_choice.h"
#include "kernels/ops.h"
#include "worker/layers/activations.h"
#include "worker/layers/expert_routing.h"
#include "worker/layers/float_buffer.h"
#include "worker/layers/rank_context.h"
#include "worker/weights/model_weights.h"

namespace lockstep {

// A mixture of experts in the place of MlpBlock: hidden += Σ weight·expert(
// norm(hidden)) over the experts that a router picks for the token, in order of
// its liking, and the shared expert's last, times its gate if it has one.
//
// A token's bits do not depend on who else goes to its experts, nor on the
// number of ranks, nor on whether these have whole experts or a part of each:
// each expert's product is complete, over all ranks, before the weighted sum.
// So the one all-reduce is of a row for each expert of each token, zeros where
// a rank has nothing of the expert. Nothing is allocated but by the
// constructor.
class ExpertsBlock {
 public:
  // Of a model without experts it holds nothing.
  ExpertsBlock(const RankContext& rank, int max_tokens);

  static int64_t Bytes(const ModelConfig& config, int max_tokens);

  absl::Status Forward(const LayerWeights& layer, int tokens,
                       Activations* activations);

 private:
  void Route(const ExpertsWeights& weights, const float* input, int tokens);
  void MultiplyExperts(const float* input, Activations* activations);
  void ClearRowsOfOthers(int tokens);
  void MultiplyShared(const ExpertsWeights& weights, const float* input,
                      int tokens, Activations* activations);
  void Combine(int tokens, float* out) const;

  const RankContext rank_;
  const ExpertsConfig& config_;
  const kernels::ExpertRule rule_;
  const int hidden_size_;
  ExpertRouting routing_;
  FloatBuffer logits_;       // [tokens, num_experts], or scores
  FloatBuffer shared_gate_;  // [tokens]
  // Rows of this rank's experts, which follow each other.
  int own_begin_ = 0, own_end_ = 0;
  FloatBuffer inputs_;  // [own rows, hidden_size]
  // [tokens·experts_per_token, hidden_size], then [tokens, hidden_size] of the
  // shared expert.
  FloatBuffer outputs_;
  std::vector<kernels::RowGroup> gate_up_, down_;  // of own rows
};

}  // namespace lockstep
