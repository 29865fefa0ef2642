#include "kernels/cuda/attention_plan.h"

#include <algorithm>

#include "kernels/attention/attend_args.h"

namespace lockstep::cuda {
namespace {

// The end of the tokens from `begin` on that are of one sequence.
int EndOfRun(const AttentionBatch& batch, int begin) {
  int end = begin + 1;
  while (end < batch.num_tokens &&
         batch.sequence_of[end] == batch.sequence_of[begin]) {
    ++end;
  }
  return end;
}

void Split(const AttentionTile& whole, AttentionPlan* plan) {
  const int chunks = whole.end_chunk - whole.begin_chunk;
  for (int token = 0; token < whole.num_tokens; ++token) {
    plan->merges.push_back({.token = whole.first_token + token,
                            .first_partial = plan->num_partials + token,
                            .step = whole.num_tokens,
                            .num_partials = chunks});
  }
  for (int chunk = whole.begin_chunk; chunk < whole.end_chunk; ++chunk) {
    AttentionTile tile = whole;
    tile.begin_chunk = chunk;
    tile.end_chunk = chunk + 1;
    tile.first_partial = plan->num_partials;
    plan->num_partials += whole.num_tokens;
    plan->tiles.push_back(tile);
  }
}

}  // namespace

int AttentionPlan::HeadsOf(int heads_per_kv_head) {
  return std::min(heads_per_kv_head, kTileRows);
}

AttentionPlan PlanAttention(const AttentionBatch& batch, int max_partials) {
  AttentionPlan plan;
  const int most = AttentionPlan::TokensOf(batch.heads_per_kv_head);
  for (int begin = 0; begin < batch.num_tokens;) {
    const int end = EndOfRun(batch, begin);
    for (int token = begin; token < end; token += most) {
      const int count = std::min(most, end - token);
      const int first =
          kernels::FirstSeen(batch.positions[token], batch.window);
      const int last = batch.positions[token + count - 1];
      const AttentionTile tile = {.first_token = token,
                                  .num_tokens = count,
                                  .begin_chunk = first / kAttentionChunk,
                                  .end_chunk = last / kAttentionChunk + 1,
                                  .first_partial = -1};
      const int chunks = tile.end_chunk - tile.begin_chunk;
      if (end - begin <= most && chunks > 1 &&
          plan.num_partials + chunks * count <= max_partials) {
        Split(tile, &plan);
      } else {
        plan.tiles.push_back(tile);
      }
    }
    begin = end;
  }
  return plan;
}

}  // namespace lockstep::cuda
