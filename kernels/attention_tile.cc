#include "kernels/attention_tile.h"

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

// Large, but on the stack of the thread that needs it.
struct SumsBuffer {
  alignas(64) float out[kMaxAttendRows * kMaxHeadDim];
  float max[kMaxAttendRows];
  float sum[kMaxAttendRows];

  AttendSums sums() { return {.max = max, .sum = sum, .out = out}; }
};

}  // namespace

AttentionTile::AttentionTile(const AttentionInput& input, int first,
                             int kv_head)
    : input_(&input), first_(first), kv_head_(kv_head) {
  for (int head = 0; head < input.heads; ++head) {
    sharing_ += input.kv_head_of[head] == kv_head;
  }
  end_ = TileEnd(*input.batch, first, TileTokens(sharing_));
}

void AttentionTile::Compute(const KernelTable& table) const {
  SumsBuffer total, chunk_sums;
  for (int head = 0;;) {
    const Heads heads = NextHeads(&head);
    if (heads.count == 0) return;
    const AttendArgs args = Args(heads);
    table.attend_chunk(args, first_chunk(), total.sums());
    for (int chunk = 1; chunk < chunks(); ++chunk) {
      table.attend_chunk(args, first_chunk() + chunk, chunk_sums.sums());
      table.merge_chunk(args, chunk_sums.sums(), total.sums());
    }
    table.finish_attention(args, total.sums());
  }
}

void AttentionTile::ComputeChunk(const KernelTable& table, int chunk,
                                 AttendSums sums) const {
  int head = 0;
  const Heads heads = NextHeads(&head);
  table.attend_chunk(Args(heads), first_chunk() + chunk, sums);
}

void AttentionTile::Finish(const KernelTable& table, AttendSums* sums) const {
  int head = 0;
  const Heads heads = NextHeads(&head);
  const AttendArgs args = Args(heads);
  for (int chunk = 1; chunk < chunks(); ++chunk) {
    table.merge_chunk(args, sums[chunk], sums[0]);
  }
  table.finish_attention(args, sums[0]);
}

AttentionTile::Heads AttentionTile::NextHeads(int* head) const {
  Heads heads;
  for (; *head < input_->heads && heads.count < kMaxAttendRows; ++*head) {
    if (input_->kv_head_of[*head] != kv_head_) continue;
    heads.list[heads.count++] = *head;
  }
  return heads;
}

AttendArgs AttentionTile::Args(const Heads& heads) const {
  const TokenBatch& batch = *input_->batch;
  return {
      .q = input_->q + first_ * input_->q_stride,
      .q_stride = input_->q_stride,
      .heads = heads.list,
      .rows = (end_ - first_) * heads.count,
      .rows_per_token = heads.count,
      .first_position = batch.positions[first_],
      .rule = input_->rule,
      .pages = batch.page_tables[batch.sequence_of[first_]],
      .kv = input_->kv,
      .kv_head = kv_head_,
      .out = input_->out + first_ * input_->out_stride,
      .out_stride = input_->out_stride,
  };
}

}  // namespace lockstep::kernels
