#include "kernels/attention_tile.h"

#include <algorithm>
#include <cstring>

namespace lockstep::kernels {
namespace {

// A tile's tokens lie between two multiples of this; it divides kAttendBlock.
constexpr int kTileTokens = 16;

// Tokens of a tile when `heads` query heads share the key-value head: the
// largest power of two whose rows fit.
int TileTokens(int heads) {
  int tokens = kTileTokens;
  while (tokens > 1 && tokens * heads > kMaxAttendRows) tokens /= 2;
  return tokens;
}

bool FollowsInSequence(const TokenBatch& batch, int token) {
  return batch.sequence_of[token] == batch.sequence_of[token - 1] &&
         batch.positions[token] == batch.positions[token - 1] + 1;
}

// The last token of the tile that `first` begins, plus one; `first` if it is in
// the middle of a tile.
int TileEnd(const TokenBatch& batch, int first, int tile_tokens) {
  if (first > 0 && FollowsInSequence(batch, first) &&
      batch.positions[first] % tile_tokens != 0) {
    return first;
  }
  int end = first + 1;
  while (end < batch.num_tokens && FollowsInSequence(batch, end) &&
         batch.positions[end] % tile_tokens != 0) {
    ++end;
  }
  return end;
}

// The rows of one tile; large, but on the stack of the thread that needs it.
struct Rows {
  float q[kMaxAttendRows * kMaxHeadDim];
  float out[kMaxAttendRows * kMaxHeadDim];
  int head[kMaxAttendRows];  // of the first token's rows
};

void ComputeHeads(const AttentionTiles& tiles, int kv_head, int first, int end,
                  int num_heads, Rows& rows) {
  const int head_dim = tiles.kv->head_dim;
  const TokenBatch& batch = *tiles.batch;
  float* q = rows.q;
  for (int token = first; token < end; ++token) {
    for (int i = 0; i < num_heads; ++i) {
      const float* source =
          tiles.q + token * tiles.q_stride + rows.head[i] * head_dim;
      for (int d = 0; d < head_dim; ++d) q[d] = source[d] * tiles.scale;
      q += head_dim;
    }
  }
  tiles.table->attend({
      .q = rows.q,
      .rows = (end - first) * num_heads,
      .rows_per_token = num_heads,
      .first_position = batch.positions[first],
      .pages = batch.page_tables[batch.sequence_of[first]],
      .kv = tiles.kv,
      .kv_head = kv_head,
      .out = rows.out,
  });
  const float* out = rows.out;
  for (int token = first; token < end; ++token) {
    for (int i = 0; i < num_heads; ++i) {
      std::memcpy(
          tiles.out + token * tiles.out_stride + rows.head[i] * head_dim, out,
          head_dim * sizeof(float));
      out += head_dim;
    }
  }
}

}  // namespace

void AttentionTiles::Compute(int64_t item) const {
  const int first = static_cast<int>(item / kv->num_kv_heads);
  const int kv_head = static_cast<int>(item % kv->num_kv_heads);
  int sharing = 0;
  for (int head = 0; head < heads; ++head) {
    sharing += kv_head_of[head] == kv_head;
  }
  const int end = TileEnd(*batch, first, TileTokens(sharing));
  if (sharing == 0 || end == first) return;
  Rows rows;
  int num_heads = 0;
  for (int head = 0; head < heads; ++head) {
    if (kv_head_of[head] != kv_head) continue;
    rows.head[num_heads++] = head;
    if (num_heads == kMaxAttendRows) {
      ComputeHeads(*this, kv_head, first, end, num_heads, rows);
      num_heads = 0;
    }
  }
  if (num_heads > 0) {
    ComputeHeads(*this, kv_head, first, end, num_heads, rows);
  }
}

}  // namespace lockstep::kernels
