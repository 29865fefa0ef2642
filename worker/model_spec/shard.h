#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "worker/model_spec/model_config.h"

namespace lockstep {

// Of the weights that are cut along their columns: the least number of columns
// that the layers' o and down can be cut at, the largest BlockValues of their
// types.
struct RowParallelBlocks {
  int o = 1;
  int down = 1;
  int expert_down = 1;
  int shared_expert_down = 1;

  bool operator==(const RowParallelBlocks&) const = default;
};

// What a rank holds of the intermediate size of an MLP, and how many columns of
// down are summed at a time (see PackedMatrix): an eighth of all the ranks'
// where that can be, else all of this rank's. Empty where the model has no such
// MLP.
struct MlpCut {
  int begin = 0, end = 0;
  int slice_cols = 0;

  int size() const { return end - begin; }
};

// Which part of a model one rank holds; a pure function of its arguments.
//
// Rank r owns the contiguous run [r·H/n, (r+1)·H/n) of query heads and every
// key-value head these use (one may be on several ranks); o is cut along the
// same heads, the intermediate size, of each expert as of an MLP, at block
// borders, the vocabulary in rows of equal number, the last rank's padded.
// Expert parallel, it owns the run [r·E/n, (r+1)·E/n) of experts instead, which
// may be empty, and all of each of them.
struct Shard {
  int rank = 0;
  int size = 1;

  int head_begin = 0, head_end = 0;        // query heads
  int kv_head_begin = 0, kv_head_end = 0;  // key-value heads
  MlpCut mlp;
  int expert_begin = 0, expert_end = 0;  // the experts that it has a part of
  MlpCut expert;                         // of each of them
  MlpCut shared_expert;
  int vocab_begin = 0, vocab_rows = 0;  // rows, padding included

  int o_slice_cols = 0;  // as those of an MlpCut

  int num_heads() const { return head_end - head_begin; }
  int num_kv_heads() const { return kv_head_end - kv_head_begin; }

  // Rank-local key-value head of each rank-local query head.
  std::vector<int32_t> kv_head_of;  // [num_heads()]
};

// Where share `index` of `count` things begins when `size` ranks share them.
int ShareBegin(int count, int index, int size);

// INVALID_ARGUMENT names --tensor_parallel_size, the weight that does not allow
// it and the sizes that would do, when a rank would hold nothing or a cut would
// be inside a block: the same on every rank. One rank holds every model.
// REQUIRES: 0 <= rank < size; rows of o and of down are whole blocks.
absl::StatusOr<Shard> MakeShard(const ModelConfig& config,
                                const RowParallelBlocks& blocks, int rank,
                                int size, bool expert_parallel = false);

// How the sums over the columns of o and of each kind of down are cut: 0 where
// it is eight equal slices, else the number of ranks that have a part each.
// Groups that cut them alike compute the same bits.
std::vector<int> SumCuts(const ModelConfig& config,
                         const RowParallelBlocks& blocks, int size,
                         bool expert_parallel = false);

// The tensor-parallel sizes that cut their sums as `size` does, `size` among
// them, ascending, out of 1, 2, 4, 8.
std::vector<int> IdenticalSizes(const ModelConfig& config,
                                const RowParallelBlocks& blocks, int size,
                                bool expert_parallel = false);

}  // namespace lockstep
