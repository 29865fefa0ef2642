#include "worker/cuda_engine/expert_activations.h"

#include <cstddef>

#include "kernels/cuda/experts/expert_rows.h"

namespace lockstep {

ExpertActivations::ExpertActivations(const ModelConfig& config,
                                     const Shard& shard, int tokens,
                                     DeviceLayout* layout) {
  const ExpertsConfig& of_model = config.experts;
  if (of_model.num_experts == 0) return;
  const size_t count = tokens, hidden_size = config.hidden_size;
  const size_t rows = count * of_model.experts_per_token;
  const int own = shard.expert_end - shard.expert_begin;
  layout->Add("the router's logits", count * of_model.num_experts, &logits);
  layout->Add("chosen experts", rows, &experts);
  layout->Add("weights of experts", rows, &weights);
  layout->Add("rows of experts", rows, &row_of);
  layout->Add("tokens of experts", rows, &token_of);
  layout->Add("first rows of experts", size_t{1} + own, &first_rows);
  layout->Add(
      "tiles of experts",
      cuda::MostExpertTiles(static_cast<int>(rows), own, cuda::kFewTileRows),
      &tiles);
  layout->Add("what experts add", rows * hidden_size, &outputs);
  if (of_model.shared_intermediate_size == 0) return;
  layout->Add("what the shared expert adds", count * hidden_size, &shared);
  layout->Add("the shared expert's gate", count, &shared_gate);
}

}  // namespace lockstep
