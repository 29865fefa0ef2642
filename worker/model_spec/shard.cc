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

// A kind of MLP that a model has, and where its cut goes.
struct Mlp {
  const char* name;
  int cols;   // of down
  int block;  // of these
  MlpCut Shard::*cut;

  int blocks() const { return cols / block; }
};

std::vector<Mlp> MlpsOf(const ModelConfig& config,
                        const RowParallelBlocks& blocks) {
  const ExpertsConfig& experts = config.experts;
  const bool has_dense_layers =
      experts.num_experts == 0 ||
      std::any_of(config.layers.begin(), config.layers.end(),
                  [](const LayerConfig& layer) { return !layer.has_experts; });
  std::vector<Mlp> mlps;
  if (has_dense_layers) {
    mlps.push_back(
        {"down_proj", config.intermediate_size, blocks.down, &Shard::mlp});
  }
  if (experts.num_experts > 0) {
    mlps.push_back({"down_proj of an expert", experts.intermediate_size,
                    blocks.expert_down, &Shard::expert});
  }
  if (experts.shared_intermediate_size > 0) {
    mlps.push_back({"down_proj of the shared expert",
                    experts.shared_intermediate_size, blocks.shared_expert_down,
                    &Shard::shared_expert});
  }
  return mlps;
}

// Why a group of `size` ranks can not hold the model; empty where it can.
std::string Misfit(const ModelConfig& config, const RowParallelBlocks& blocks,
                   int size) {
  if (size < 1) return "a group has at least one rank";
  if (size > config.num_heads) {
    return absl::StrCat("the model has ", config.num_heads, " query heads");
  }
  for (const Mlp& mlp : MlpsOf(config, blocks)) {
    if (size > mlp.blocks()) {
      return absl::StrCat(mlp.name, " has ", mlp.blocks(), " blocks of ",
                          mlp.block, " columns");
    }
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

int DownEighth(const Mlp& mlp, int size) {
  return EighthOf(mlp.cols, mlp.blocks(), mlp.block, size);
}

MlpCut Cut(const Mlp& mlp, int rank, int size) {
  MlpCut cut;
  cut.begin = ShareBegin(mlp.blocks(), rank, size) * mlp.block;
  cut.end = ShareBegin(mlp.blocks(), rank + 1, size) * mlp.block;
  const int eighth = DownEighth(mlp, size);
  cut.slice_cols = eighth > 0 ? eighth : cut.size();
  return cut;
}

}  // namespace

absl::StatusOr<Shard> MakeShard(const ModelConfig& config,
                                const RowParallelBlocks& blocks, int rank,
                                int size) {
  CHECK_EQ(OCols(config) % blocks.o, 0);
  const std::vector<Mlp> mlps = MlpsOf(config, blocks);
  for (const Mlp& mlp : mlps) CHECK_EQ(mlp.cols % mlp.block, 0) << mlp.name;
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

  for (const Mlp& mlp : mlps) shard.*mlp.cut = Cut(mlp, rank, size);

  shard.vocab_rows = VocabRows(config, size);
  shard.vocab_begin = rank * shard.vocab_rows;

  const int o_eighth = OEighth(config, blocks, size);
  shard.o_slice_cols =
      o_eighth > 0 ? o_eighth : shard.num_heads() * config.head_dim;
  return shard;
}

std::vector<int> IdenticalSizes(const ModelConfig& config,
                                const RowParallelBlocks& blocks, int size) {
  const auto eighths = [&](int n) {
    const std::vector<Mlp> mlps = MlpsOf(config, blocks);
    return Misfit(config, blocks, n).empty() &&
           OEighth(config, blocks, n) > 0 &&
           std::all_of(mlps.begin(), mlps.end(),
                       [n](const Mlp& mlp) { return DownEighth(mlp, n) > 0; });
  };
  if (!eighths(size)) return {size};
  std::vector<int> sizes;
  for (const int n : {1, 2, 4, 8}) {
    if (eighths(n)) sizes.push_back(n);
  }
  return sizes;
}

}  // namespace lockstep
