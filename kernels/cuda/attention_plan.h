#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::cuda {

// Positions are visited in chunks of so many, counted from 0. A chunk is summed
// from nothing and chunks are merged in order, so whether blocks of their own
// compute them changes no bit.
inline constexpr int kAttentionChunk = 512;

// Rows, of a token and a head each, that a block computes together.
inline constexpr int kTileRows = 16;

// Tokens of one sequence, which follow each other in the batch, over some of
// their chunks.
struct AttentionTile {
  int32_t first_token;
  int32_t num_tokens;
  int32_t begin_chunk;
  int32_t end_chunk;
  int32_t first_partial;  // one a token, for a tile of one chunk; -1: finishes
};

// A token whose chunks were computed apart: partials first, first + step, ….
struct AttentionMerge {
  int32_t token;
  int32_t first_partial;
  int32_t step;
  int32_t num_partials;
};

// What each block computes of a step. The host makes it, once for all layers.
struct AttentionPlan {
  std::vector<AttentionTile> tiles;
  std::vector<AttentionMerge> merges;
  int num_partials = 0;

  // How many heads of a key-value head, and tokens, a tile takes.
  static int HeadsOf(int heads_per_kv_head);
  static int TokensOf(int heads_per_kv_head) {
    return kTileRows / HeadsOf(heads_per_kv_head);
  }
};

// What of a batch the plan depends on, in host memory; see PagedBatch.
struct AttentionBatch {
  int num_tokens;
  const int32_t* positions;
  const int32_t* sequence_of;
  int heads_per_kv_head;
  int window;  // 0: none
};

// Runs that fit one tile, such as decodes, are split into their chunks while
// there are partials: they would leave most of a GPU idle. The result of
// attention does not depend on max_partials.
AttentionPlan PlanAttention(const AttentionBatch& batch, int max_partials);

}  // namespace lockstep::cuda
