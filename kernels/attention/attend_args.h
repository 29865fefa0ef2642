#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention_rule.h"
#include "kernels/attention/paged_kv.h"

namespace lockstep::kernels {

// A row of attention is summed over chunks of positions counted from 0, each a
// softmax of its own that is rescaled, block by block, as larger scores turn
// up; then the chunks are merged in order. Whoever computes them, on whatever
// threads, gets the same bits.
inline constexpr int kAttendBlock = 64;    // positions
inline constexpr int kAttendChunk = 512;   // positions
inline constexpr int kMaxAttendRows = 64;  // of a tile

// The first position that a token at `position` sees through a window of so
// many positions, its own the last of them; 0: it sees all up to its own.
inline constexpr int FirstSeen(int position, int window) {
  return window == 0 || position < window ? 0 : position - window + 1;
}

// A tile of attention: the query heads of consecutive tokens of one sequence
// that share a key-value head. Row r is head heads[r % rows_per_token] of token
// r / rows_per_token, belongs to position first_position + r / rows_per_token
// and sees positions from FirstSeen to it. All of the tile's tokens lie in one
// block of kAttendBlock positions.
struct AttendArgs {
  const float* q;  // of the first token, [heads, head_dim]
  ptrdiff_t q_stride;
  const int* heads;  // [rows_per_token]
  int rows;          // at most kMaxAttendRows
  int rows_per_token;
  int first_position;
  AttentionRule rule;
  const int32_t* pages;
  const PagedKv* kv;  // head_dim at most kMaxHeadDim
  int kv_head;
  float* out;  // of the first token, [heads, head_dim]
  ptrdiff_t out_stride;
};

// Whole vectors of 16 lanes.
inline constexpr int PaddedHeadDim(int head_dim) {
  return (head_dim + 15) / 16 * 16;
}

// Softmax sums of a tile's rows over some of their positions: the largest
// score, Σ e^(score - max), and Σ e^(score - max)·value. Of a row that sees
// none of these: -inf, 0 and 0.
struct AttendSums {
  float* max;  // [rows]
  float* sum;  // [rows]
  float* out;  // [rows, PaddedHeadDim(head_dim)]
};

}  // namespace lockstep::kernels
