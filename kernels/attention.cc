#include "kernels/attention.h"

#include <algorithm>
#include <cstdint>

namespace lockstep::kernels {
namespace {

// Tiles with more than a thread's share of the work over this are split.
constexpr int kTilesPerThread = 4;
constexpr int kMaxSplitTiles = 256;
constexpr int kMaxSplitChunks = 4096;
constexpr int64_t kScratchFloats = (1 << 20) / sizeof(float);

// Rows times positions.
int64_t Work(const AttentionTile& tile) {
  return int64_t{tile.rows()} * tile.positions();
}

class Attention {
 public:
  Attention(const KernelTable& table, ThreadPool& pool,
            const AttentionInput& input)
      : table_(table),
        pool_(pool),
        input_(input),
        kv_heads_(input.kv->num_kv_heads),
        padded_dim_(PaddedHeadDim(input.kv->head_dim)) {}

  void Compute() {
    ChooseSplits();
    // An item is a chunk of a split tile, or a token and a key-value head: the
    // first token of a tile does the tile's work, the others none. The last
    // tokens of a prompt have most to read: they go first.
    const int64_t tokens = int64_t{input_.batch->num_tokens} * kv_heads_;
    const int64_t items = num_chunks_ + tokens;
    pool_.For(items, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (i < num_chunks_) {
          ComputeChunk(i);
        } else {
          ComputeTile(items - 1 - i);
        }
      }
    });
    if (num_splits_ == 0) return;
    pool_.For(num_splits_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Split& split = splits_[i];
        Tile(split.item).Finish(table_, &sums_[split.first_chunk]);
      }
    });
  }

 private:
  struct Split {
    int64_t item;
    int first_chunk;  // index into sums_
    int end_chunk;
  };

  AttentionTile Tile(int64_t item) const {
    return AttentionTile(input_, static_cast<int>(item / kv_heads_),
                         static_cast<int>(item % kv_heads_));
  }

  void ChooseSplits() {
    if (pool_.size() == 1) return;
    const TokenBatch& batch = *input_.batch;
    int64_t work = 0;
    int positions = 0;
    for (int token = 0; token < batch.num_tokens; ++token) {
      const int seen = batch.positions[token] + 1 -
                       FirstSeen(batch.positions[token], input_.rule.window);
      work += int64_t{seen} * input_.heads;
      positions = std::max(positions, seen);
    }
    const int64_t limit = work / (int64_t{kTilesPerThread} * pool_.size());
    if (positions <= kAttendChunk) return;
    if (int64_t{positions} * kMaxAttendRows <= limit) return;
    const int64_t items = int64_t{batch.num_tokens} * kv_heads_;
    for (int64_t item = 0; item < items; ++item) {
      const AttentionTile tile = Tile(item);
      if (tile.empty() || !tile.fits() || tile.chunks() == 1) continue;
      if (Work(tile) > limit) AddSplit(item, tile);
    }
  }

  // Nothing if there is no room for it.
  void AddSplit(int64_t item, const AttentionTile& tile) {
    const int rows = tile.rows(), chunks = tile.chunks();
    const int64_t row_floats = (2 * rows + 15) / 16 * 16;
    const int64_t floats = row_floats + int64_t{rows} * padded_dim_;
    if (num_splits_ == kMaxSplitTiles) return;
    if (num_chunks_ + chunks > kMaxSplitChunks) return;
    if (used_ + chunks * floats > kScratchFloats) return;
    splits_[num_splits_++] = {item, num_chunks_, num_chunks_ + chunks};
    for (int chunk = 0; chunk < chunks; ++chunk, used_ += floats) {
      float* memory = scratch_ + used_;
      sums_[num_chunks_++] = {
          .max = memory, .sum = memory + rows, .out = memory + row_floats};
    }
  }

  void ComputeChunk(int64_t index) const {
    const Split* split = splits_;
    while (index >= split->end_chunk) ++split;
    Tile(split->item)
        .ComputeChunk(table_, static_cast<int>(index) - split->first_chunk,
                      sums_[index]);
  }

  void ComputeTile(int64_t item) const {
    for (int i = 0; i < num_splits_; ++i) {
      if (splits_[i].item == item) return;
    }
    const AttentionTile tile = Tile(item);
    if (!tile.empty()) tile.Compute(table_);
  }

  const KernelTable& table_;
  ThreadPool& pool_;
  const AttentionInput& input_;
  const int kv_heads_;
  const int padded_dim_;
  int num_splits_ = 0;
  int num_chunks_ = 0;
  int64_t used_ = 0;  // of scratch_
  Split splits_[kMaxSplitTiles];
  AttendSums sums_[kMaxSplitChunks];
  alignas(64) float scratch_[kScratchFloats];
};

}  // namespace

void ComputeAttention(const KernelTable& table, ThreadPool& pool,
                      const AttentionInput& input) {
  Attention(table, pool, input).Compute();
}

}  // namespace lockstep::kernels
