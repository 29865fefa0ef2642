#include "worker/model_spec/shard.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <glog/logging.h>

#include <algorithm>
#include <set>
#include <string>

namespace lockstep {
namespace {

constexpr int kSlices = 8;  // of K, over all ranks

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
  int ranks;  // that share one
  MlpCut Shard::*cut;

  int blocks() const { return cols / block; }
};

// What a model is cut into, besides what its config says.
struct Group {
  const RowParallelBlocks& blocks;
  int size;
  bool expert_parallel;
};

std::vector<Mlp> MlpsOf(const ModelConfig& config, const Group& group) {
  const auto& [blocks, size, expert_parallel] = group;
  const ExpertsConfig& experts = config.experts;
  const bool has_dense_layers =
      experts.num_experts == 0 ||
      std::any_of(config.layers.begin(), config.layers.end(),
                  [](const LayerConfig& layer) { return !layer.has_experts; });
  std::vector<Mlp> mlps;
  if (has_dense_layers) {
    mlps.push_back({"down_proj", config.intermediate_size, blocks.down, size,
                    &Shard::mlp});
  }
  if (experts.num_experts > 0) {
    mlps.push_back({"down_proj of an expert", experts.intermediate_size,
                    blocks.expert_down, expert_parallel ? 1 : size,
                    &Shard::expert});
  }
  if (experts.shared_intermediate_size > 0) {
    mlps.push_back({"down_proj of the shared expert",
                    experts.shared_intermediate_size, blocks.shared_expert_down,
                    size, &Shard::shared_expert});
  }
  return mlps;
}

// Why a group can not hold the model; empty where it can.
std::string Misfit(const ModelConfig& config, const Group& group) {
  const int size = group.size;
  if (size < 1) return "a group has at least one rank";
  if (size > config.num_heads) {
    return absl::StrCat("the model has ", config.num_heads, " query heads");
  }
  for (const Mlp& mlp : MlpsOf(config, group)) {
    if (mlp.ranks > mlp.blocks()) {
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
    if (column % group.blocks.o != 0) {
      return absl::StrCat("o_proj would be cut at column ", column,
                          ", inside a block of ", group.blocks.o);
    }
  }
  return "";
}

std::string FittingSizes(const ModelConfig& config, Group group) {
  std::vector<int> sizes;
  for (group.size = 1; group.size <= config.num_heads; ++group.size) {
    if (Misfit(config, group).empty()) sizes.push_back(group.size);
  }
  return absl::StrCat("sizes that do: ", absl::StrJoin(sizes, ", "));
}

// An eighth of `cols` where that is whole blocks and each of `ranks`, which
// share `parts` equal parts of them, holds as many eighths; else 0.
int EighthOf(int64_t cols, int parts, int block, int ranks) {
  const bool divides = kSlices % ranks == 0 && parts % ranks == 0;
  return divides && cols % (int64_t{kSlices} * block) == 0
             ? static_cast<int>(cols / kSlices)
             : 0;
}

int OEighth(const ModelConfig& config, const Group& group) {
  return EighthOf(OCols(config), config.num_heads, group.blocks.o, group.size);
}

int DownEighth(const Mlp& mlp) {
  return EighthOf(mlp.cols, mlp.blocks(), mlp.block, mlp.ranks);
}

MlpCut Cut(const Mlp& mlp, int rank) {
  const int share = mlp.ranks == 1 ? 0 : rank;
  MlpCut cut;
  cut.begin = ShareBegin(mlp.blocks(), share, mlp.ranks) * mlp.block;
  cut.end = ShareBegin(mlp.blocks(), share + 1, mlp.ranks) * mlp.block;
  const int eighth = DownEighth(mlp);
  cut.slice_cols = eighth > 0 ? eighth : cut.size();
  return cut;
}

void CutExperts(const ModelConfig& config, const Group& group, Shard* shard) {
  const int experts = config.experts.num_experts;
  const int index = group.expert_parallel ? shard->rank : 0;
  const int shares = group.expert_parallel ? shard->size : 1;
  shard->expert_begin = ShareBegin(experts, index, shares);
  shard->expert_end = ShareBegin(experts, index + 1, shares);
}

}  // namespace

int ShareBegin(int count, int index, int size) {
  return static_cast<int>(int64_t{count} * index / size);
}

absl::StatusOr<Shard> MakeShard(const ModelConfig& config,
                                const RowParallelBlocks& blocks, int rank,
                                int size, bool expert_parallel) {
  CHECK_EQ(OCols(config) % blocks.o, 0);
  const Group group = {blocks, size, expert_parallel};
  const std::vector<Mlp> mlps = MlpsOf(config, group);
  for (const Mlp& mlp : mlps) CHECK_EQ(mlp.cols % mlp.block, 0) << mlp.name;
  const std::string misfit = Misfit(config, group);
  if (!misfit.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--tensor_parallel_size=", size, " does not fit this model: ", misfit,
        "; ", FittingSizes(config, group), "."));
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

  for (const Mlp& mlp : mlps) shard.*mlp.cut = Cut(mlp, rank);
  CutExperts(config, group, &shard);

  shard.vocab_rows = VocabRows(config, size);
  shard.vocab_begin = rank * shard.vocab_rows;

  const int o_eighth = OEighth(config, group);
  shard.o_slice_cols =
      o_eighth > 0 ? o_eighth : shard.num_heads() * config.head_dim;
  return shard;
}

std::vector<int> SumCuts(const ModelConfig& config,
                         const RowParallelBlocks& blocks, int size,
                         bool expert_parallel) {
  const Group group = {blocks, size, expert_parallel};
  std::vector<int> cuts = {OEighth(config, group) > 0 ? 0 : size};
  for (const Mlp& mlp : MlpsOf(config, group)) {
    cuts.push_back(DownEighth(mlp) > 0 ? 0 : mlp.ranks);
  }
  return cuts;
}

std::vector<int> IdenticalSizes(const ModelConfig& config,
                                const RowParallelBlocks& blocks, int size,
                                bool expert_parallel) {
  const auto cuts_of = [&](int n) {
    return SumCuts(config, blocks, n, expert_parallel);
  };
  std::set<int> sizes = {size};
  for (const int n : {1, 2, 4, 8}) {
    if (Misfit(config, {blocks, n, expert_parallel}).empty() &&
        cuts_of(n) == cuts_of(size)) {
      sizes.insert(n);
    }
  }
  return {sizes.begin(), sizes.end()};
}

}  // namespace lockstep
