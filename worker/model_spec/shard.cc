#include "worker/model_spec/shard.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

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

// Why a group of `size` ranks can not hold the model; empty where it can.
std::string Misfit(const ModelConfig& config, int block, int size) {
  if (size < 1) return "a group has at least one rank";
  if (size > config.num_heads) {
    return absl::StrCat("the model has ", config.num_heads, " query heads");
  }
  if (config.intermediate_size % block != 0) {
    return absl::StrCat("the intermediate size ", config.intermediate_size,
                        " is not a multiple of the weights' block of ", block);
  }
  if (size > config.intermediate_size / block) {
    return absl::StrCat("the intermediate size ", config.intermediate_size,
                        " has ", config.intermediate_size / block,
                        " blocks of ", block);
  }
  if (int64_t{size - 1} * VocabRows(config, size) >= config.vocab_size) {
    return absl::StrCat("the vocabulary of ", config.vocab_size,
                        " would leave the last rank empty");
  }
  for (int rank = 0; rank <= size; ++rank) {
    const int64_t column =
        int64_t{ShareBegin(config.num_heads, rank, size)} * config.head_dim;
    if (column % block != 0) {
      return absl::StrCat("o_proj would be cut at column ", column,
                          ", inside a block of ", block);
    }
  }
  return "";
}

std::string FittingSizes(const ModelConfig& config, int block) {
  std::vector<int> sizes;
  for (int size = 1; size <= config.num_heads; ++size) {
    if (Misfit(config, block, size).empty()) sizes.push_back(size);
  }
  if (sizes.empty()) return "no size does";
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

int OEighth(const ModelConfig& config, int block, int size) {
  return EighthOf(int64_t{config.num_heads} * config.head_dim, config.num_heads,
                  block, size);
}

int DownEighth(const ModelConfig& config, int block, int size) {
  return EighthOf(config.intermediate_size, config.intermediate_size / block,
                  block, size);
}

}  // namespace

absl::StatusOr<Shard> MakeShard(const ModelConfig& config, int block, int rank,
                                int size) {
  const std::string misfit = Misfit(config, block, size);
  if (!misfit.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--tensor_parallel_size=", size, " does not fit this model: ", misfit,
        "; ", FittingSizes(config, block), "."));
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

  const int blocks = config.intermediate_size / block;
  shard.intermediate_begin = ShareBegin(blocks, rank, size) * block;
  shard.intermediate_end = ShareBegin(blocks, rank + 1, size) * block;

  shard.vocab_rows = VocabRows(config, size);
  shard.vocab_begin = rank * shard.vocab_rows;

  const int o_eighth = OEighth(config, block, size);
  const int down_eighth = DownEighth(config, block, size);
  shard.o_slice_cols =
      o_eighth > 0 ? o_eighth : shard.num_heads() * config.head_dim;
  shard.down_slice_cols = down_eighth > 0 ? down_eighth : shard.intermediate();
  return shard;
}

std::vector<int> IdenticalSizes(const ModelConfig& config, int block,
                                int size) {
  const auto eighths = [&config, block](int n) {
    return Misfit(config, block, n).empty() && OEighth(config, block, n) > 0 &&
           DownEighth(config, block, n) > 0;
  };
  if (!eighths(size)) return {size};
  std::vector<int> sizes;
  for (const int n : {1, 2, 4, 8}) {
    if (eighths(n)) sizes.push_back(n);
  }
  return sizes;
}

}  // namespace lockstep
