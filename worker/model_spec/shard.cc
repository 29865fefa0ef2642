#include "worker/model_spec/shard.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <glog/logging.h>

#include <algorithm>
#include <string>

namespace lockstep {
namespace {

constexpr int kSlices = 8;  // of K, over all ranks

// Where share `index` of `count` things begins when `size` ranks share them.
int ShareBegin(int count, int index, int size) {
  return static_cast<int>(int64_t{count} * index / size);
}

int VocabRows(const ModelConfig& config, int size) {
  return (config.vocab_size + size - 1) / size;
}

int OCols(const ModelConfig& config) {
  return config.num_heads * config.head_dim;
}

int DownBlocks(const ModelConfig& config, const RowParallelBlocks& blocks) {
  return config.intermediate_size / blocks.down;
}

// Why a group of `size` ranks can not hold the model; empty where it can.
std::string Misfit(const ModelConfig& config, const RowParallelBlocks& blocks,
                   int size) {
  if (size < 1) return "a group has at least one rank";
  if (size > config.num_heads) {
    return absl::StrCat("the model has ", config.num_heads, " query heads");
  }
  if (size > DownBlocks(config, blocks)) {
    return absl::StrCat("down_proj has ", DownBlocks(config, blocks),
                        " blocks of ", blocks.down, " columns");
  }
  if (int64_t{size - 1} * VocabRows(config, size) >= config.vocab_size) {
    return absl::StrCat("the vocabulary of ", config.vocab_size,
                        " would leave the last rank empty");
  }
  for (int rank = 1; rank < size; ++rank) {
    const int64_t column =
        int64_t{ShareBegin(config.num_heads, rank, size)} * config.head_dim;
    if (column % blocks.o != 0) {
      return absl::StrCat("o_proj would be cut at column ", column,
                          ", inside a block of ", blocks.o);
    }
  }
  return "";
}

std::string FittingSizes(const ModelConfig& config,
                         const RowParallelBlocks& blocks) {
  std::vector<int> sizes;
  for (int size = 1; size <= config.num_heads; ++size) {
    if (Misfit(config, blocks, size).empty()) sizes.push_back(size);
  }
  return absl::StrCat("sizes that do: ", absl::StrJoin(sizes, ", "));
}

// An eighth of `cols` where that is whole blocks and each of `size` ranks,
// which share `parts` equal parts of them, holds as many eighths; else 0.
int EighthOf(int64_t cols, int parts, int block, int size) {
  const bool divides = kSlices % size == 0 && parts % size == 0;
  return divides && cols % (int64_t{kSlices} * block) == 0
             ? static_cast<int>(cols / kSlices)
             : 0;
}

int OEighth(const ModelConfig& config, const RowParallelBlocks& blocks,
            int size) {
  return EighthOf(OCols(config), config.num_heads, blocks.o, size);
}

int DownEighth(const ModelConfig& config, const RowParallelBlocks& blocks,
               int size) {
  return EighthOf(config.intermediate_size, DownBlocks(config, blocks),
                  blocks.down, size);
}

}  // namespace

absl::StatusOr<Shard> MakeShard(const ModelConfig& config,
                                const RowParallelBlocks& blocks, int rank,
                                int size) {
  CHECK_EQ(OCols(config) % blocks.o, 0);
  CHECK_EQ(config.intermediate_size % blocks.down, 0);
  const std::string misfit = Misfit(config, blocks, size);
  if (!misfit.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--tensor_parallel_size=", size, " does not fit this model: ", misfit,
        "; ", FittingSizes(config, blocks), "."));
  }
  Shard shard;
  shard.rank = rank;
  shard.size = size;

  shard.head_begin = ShareBegin(config.num_heads, rank, size);
  shard.head_end = ShareBegin(config.num_heads, rank + 1, size);
  const int heads_per_kv_head = config.num_heads / config.num_kv_heads;
  shard.kv_head_begin = shard.head_begin / heads_per_kv_head;
  shard.kv_head_end = (shard.head_end - 1) / heads_per_kv_head + 1;
  for (int head = shard.head_begin; head < shard.head_end; ++head) {
    shard.kv_head_of.push_back(head / heads_per_kv_head - shard.kv_head_begin);
  }

  const int down_blocks = DownBlocks(config, blocks);
  shard.intermediate_begin = ShareBegin(down_blocks, rank, size) * blocks.down;
  shard.intermediate_end =
      ShareBegin(down_blocks, rank + 1, size) * blocks.down;

  shard.vocab_rows = VocabRows(config, size);
  shard.vocab_begin = rank * shard.vocab_rows;

  const int o_eighth = OEighth(config, blocks, size);
  const int down_eighth = DownEighth(config, blocks, size);
  shard.o_slice_cols =
      o_eighth > 0 ? o_eighth : shard.num_heads() * config.head_dim;
  shard.down_slice_cols = down_eighth > 0 ? down_eighth : shard.intermediate();
  return shard;
}

std::vector<int> IdenticalSizes(const ModelConfig& config,
                                const RowParallelBlocks& blocks, int size) {
  const auto eighths = [&](int n) {
    return Misfit(config, blocks, n).empty() &&
           OEighth(config, blocks, n) > 0 && DownEighth(config, blocks, n) > 0;
  };
  if (!eighths(size)) return {size};
  std::vector<int> sizes;
  for (const int n : {1, 2, 4, 8}) {
    if (eighths(n)) sizes.push_back(n);
  }
  return sizes;
}

}  // namespace lockstep
