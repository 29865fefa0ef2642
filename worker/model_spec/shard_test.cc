#include "worker/model_spec/shard.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelConfig Config(int heads, int kv_heads, int head_dim, int intermediate,
                   int vocab) {
  ModelConfig config;
  config.num_heads = heads;
  config.num_kv_heads = kv_heads;
  config.head_dim = head_dim;
  config.intermediate_size = intermediate;
  config.vocab_size = vocab;
  return config;
}

const ModelConfig kSmolLm2 = Config(9, 3, 64, 1536, 49152);
const ModelConfig kTiny = Config(8, 2, 16, 128, 512);
const ModelConfig kQwen3 = Config(16, 8, 128, 3072, 151936);

RowParallelBlocks Both(int block) { return {.o = block, .down = block}; }

// The columns, of all ranks' together, at which slices of o and down begin.
struct SliceBegins {
  std::vector<int> o, down;

  bool operator==(const SliceBegins&) const = default;
};

SliceBegins SliceBeginsOf(const ModelConfig& config,
                          const RowParallelBlocks& blocks, int size) {
  SliceBegins begins;
  for (int rank = 0; rank < size; ++rank) {
    const Shard shard = *MakeShard(config, blocks, rank, size);
    for (int column = shard.head_begin * config.head_dim;
         column < shard.head_end * config.head_dim;
         column += shard.o_slice_cols) {
      begins.o.push_back(column);
    }
    for (int column = shard.mlp.begin; column < shard.mlp.end;
         column += shard.mlp.slice_cols) {
      begins.down.push_back(column);
    }
  }
  return begins;
}

TEST(Shard, CutsAsWrittenHere) {
  struct Case {
    const char* model;
    const ModelConfig& config;
    int block, rank, size;
    std::pair<int, int> heads, kv_heads, intermediate, vocab;  // begin, end
    int o_slice_cols, down_slice_cols;
  };
  const Case cases[] = {
      // 576 / 8 = 72 is no multiple of 32, 1536 / 8 = 192 is.
      {"SmolLM2",
       kSmolLm2,
       32,
       0,
       1,
       {0, 9},
       {0, 3},
       {0, 1536},
       {0, 49152},
       576,
       192},
      {"SmolLM2",
       kSmolLm2,
       1,
       0,
       1,
       {0, 9},
       {0, 3},
       {0, 1536},
       {0, 49152},
       72,
       192},
      {"SmolLM2",
       kSmolLm2,
       32,
       0,
       2,
       {0, 4},
       {0, 2},
       {0, 768},
       {0, 24576},
       256,
       192},
      {"SmolLM2",
       kSmolLm2,
       32,
       1,
       2,
       {4, 9},
       {1, 3},
       {768, 1536},
       {24576, 49152},
       320,
       192},
      {"SmolLM2",
       kSmolLm2,
       32,
       1,
       3,
       {3, 6},
       {1, 2},
       {512, 1024},
       {16384, 32768},
       192,
       512},
      {"SmolLM2",
       kSmolLm2,
       32,
       3,
       4,
       {6, 9},
       {2, 3},
       {1152, 1536},
       {36864, 49152},
       192,
       192},
      // 48 blocks for five ranks: 9, 10, 9, 10, 10.
      {"SmolLM2",
       kSmolLm2,
       32,
       1,
       5,
       {1, 3},
       {0, 1},
       {288, 608},
       {9831, 19662},
       128,
       320},
      {"SmolLM2",
       kSmolLm2,
       32,
       8,
       9,
       {8, 9},
       {2, 3},
       {1344, 1536},
       {43696, 49158},
       64,
       192},
      {"tiny", kTiny, 1, 0, 1, {0, 8}, {0, 2}, {0, 128}, {0, 512}, 16, 16},
      {"tiny", kTiny, 1, 1, 2, {4, 8}, {1, 2}, {64, 128}, {256, 512}, 16, 16},
      // A key-value head on more than one rank.
      {"tiny", kTiny, 1, 1, 4, {2, 4}, {0, 1}, {32, 64}, {128, 256}, 16, 16},
      {"tiny", kTiny, 1, 7, 8, {7, 8}, {1, 2}, {112, 128}, {448, 512}, 16, 16},
      {"tiny", kTiny, 1, 1, 3, {2, 5}, {0, 2}, {42, 85}, {171, 342}, 48, 43},
      {"tiny", kTiny, 32, 1, 2, {4, 8}, {1, 2}, {64, 128}, {256, 512}, 64, 64},
      {"Qwen3-0.6B",
       kQwen3,
       32,
       0,
       1,
       {0, 16},
       {0, 8},
       {0, 3072},
       {0, 151936},
       256,
       384},
      {"Qwen3-0.6B",
       kQwen3,
       1,
       5,
       8,
       {10, 12},
       {5, 6},
       {1920, 2304},
       {94960, 113952},
       256,
       384},
      {"Qwen3-0.6B",
       kQwen3,
       256,
       1,
       4,
       {4, 8},
       {2, 4},
       {768, 1536},
       {37984, 75968},
       256,
       768},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.model, ", block ", c.block, ", rank ", c.rank,
                              " of ", c.size));
    const auto shard = MakeShard(c.config, Both(c.block), c.rank, c.size);
    ASSERT_TRUE(shard.ok()) << shard.status();
    EXPECT_EQ(std::pair(shard->head_begin, shard->head_end), c.heads);
    EXPECT_EQ(std::pair(shard->kv_head_begin, shard->kv_head_end), c.kv_heads);
    EXPECT_EQ(std::pair(shard->mlp.begin, shard->mlp.end), c.intermediate);
    EXPECT_EQ(
        std::pair(shard->vocab_begin, shard->vocab_begin + shard->vocab_rows),
        c.vocab);
    EXPECT_EQ(shard->o_slice_cols, c.o_slice_cols);
    EXPECT_EQ(shard->mlp.slice_cols, c.down_slice_cols);
  }
}

// Of plain weights, of most quantized ones, of those in super-blocks, and of
// mixed files.
const RowParallelBlocks kBlocks[] = {Both(1),
                                     Both(16),
                                     Both(32),
                                     Both(256),
                                     {.o = 32, .down = 256},
                                     {.o = 1, .down = 32},
                                     {.o = 256, .down = 32}};

// Whether a file can have `blocks`: rows are whole ones.
bool Divides(const RowParallelBlocks& blocks, const ModelConfig& config) {
  return config.num_heads * config.head_dim % blocks.o == 0 &&
         config.intermediate_size % blocks.down == 0;
}

TEST(Shard, RanksHoldEverythingOnceAndTheKvHeadsTheyUse) {
  for (const ModelConfig& config : {kSmolLm2, kTiny, kQwen3}) {
    for (const RowParallelBlocks& blocks : kBlocks) {
      for (int size = 1; size <= 9; ++size) {
        if (!Divides(blocks, config)) continue;
        if (!MakeShard(config, blocks, 0, size).ok()) continue;
        SCOPED_TRACE(absl::StrCat(config.num_heads, " heads, blocks ", blocks.o,
                                  " and ", blocks.down, ", size ", size));
        int heads = 0, intermediate = 0, vocab = 0;
        for (int rank = 0; rank < size; ++rank) {
          const Shard shard = *MakeShard(config, blocks, rank, size);
          EXPECT_EQ(shard.head_begin, heads);
          EXPECT_EQ(shard.mlp.begin, intermediate);
          EXPECT_EQ(shard.vocab_begin, vocab);
          heads = shard.head_end;
          intermediate = shard.mlp.end;
          vocab += shard.vocab_rows;
          EXPECT_EQ(shard.num_heads() * config.head_dim % shard.o_slice_cols,
                    0);
          EXPECT_EQ(shard.mlp.size() % shard.mlp.slice_cols, 0);
          EXPECT_EQ(shard.o_slice_cols % blocks.o, 0);
          EXPECT_EQ(shard.mlp.slice_cols % blocks.down, 0);
          ASSERT_EQ(shard.kv_head_of.size(), shard.num_heads());
          EXPECT_EQ(shard.kv_head_of.front(), 0);
          EXPECT_EQ(shard.kv_head_of.back(), shard.num_kv_heads() - 1);
          for (int i = 0; i < shard.num_heads(); ++i) {
            EXPECT_EQ(shard.kv_head_begin + shard.kv_head_of[i],
                      (shard.head_begin + i) /
                          (config.num_heads / config.num_kv_heads));
          }
        }
        EXPECT_EQ(heads, config.num_heads);
        EXPECT_EQ(intermediate, config.intermediate_size);
        EXPECT_GE(vocab, config.vocab_size);
      }
    }
  }
}

TEST(Shard, RefusesSizesThatDoNotFitAndNamesThoseThatDo) {
  struct Case {
    ModelConfig config;
    RowParallelBlocks blocks;
    int size;
    const char* message;
  };
  const Case cases[] = {
      {kTiny, Both(1), 9,
       "--tensor_parallel_size=9 does not fit this model: the model has 8 "
       "query heads; sizes that do: 1, 2, 3, 4, 5, 6, 7, 8."},
      {kTiny, Both(1), 0,
       "--tensor_parallel_size=0 does not fit this model: a group has at least "
       "one rank"},
      {kTiny, Both(32), 8,
       "down_proj has 4 blocks of 32 columns; sizes that do: 1, 2, 4."},
      {kTiny,
       {.o = 1, .down = 64},
       4,
       "down_proj has 2 blocks of 64 columns; sizes that do: 1, 2."},
      {kTiny,
       {.o = 128, .down = 1},
       2,
       "o_proj would be cut at column 64, inside a block of 128; sizes that "
       "do: 1."},
      {kTiny, Both(32), 3,
       "o_proj would be cut at column 80, inside a block of 32"},
      {Config(8, 2, 16, 128, 9), Both(1), 8,
       "the vocabulary of 9 would leave the last rank empty"},
  };
  for (const Case& c : cases) {
    const auto shard = MakeShard(c.config, c.blocks, 0, c.size);
    EXPECT_EQ(shard.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(shard.status().message()), HasSubstr(c.message));
  }
}

// SmolLM2 with down in blocks of 256 and o, whose 576 columns are none, of 32.
TEST(Shard, BlocksOfOneWeightDoNotBindTheOther) {
  const RowParallelBlocks blocks = {.o = 32, .down = 256};
  const auto whole = MakeShard(kSmolLm2, blocks, 0, 1);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->num_heads(), 9);
  EXPECT_EQ(whole->o_slice_cols, 576);
  EXPECT_EQ(whole->mlp.slice_cols, 1536);

  const auto second = MakeShard(kSmolLm2, blocks, 1, 4);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->num_heads(), 2);
  EXPECT_EQ(second->mlp.begin, 256);
  EXPECT_EQ(second->mlp.end, 768);

  // Eighths of o are 32 columns, of down 128.
  const ModelConfig config = Config(8, 2, 32, 1024, 512);
  EXPECT_EQ(MakeShard(config, {.o = 32, .down = 1}, 0, 1)->o_slice_cols, 32);
  EXPECT_EQ(MakeShard(config, {.o = 256, .down = 1}, 0, 1)->o_slice_cols, 256);
  EXPECT_EQ(MakeShard(config, {.o = 256, .down = 1}, 0, 1)->mlp.slice_cols,
            128);
}

TEST(IdenticalSizes, AreThoseThatCutTheSameEightSlices) {
  EXPECT_THAT(IdenticalSizes(kTiny, Both(1), 1), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(IdenticalSizes(kTiny, Both(1), 4), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(IdenticalSizes(kTiny, Both(1), 3), ElementsAre(3));
  EXPECT_THAT(IdenticalSizes(kTiny, Both(32), 2), ElementsAre(2));
  EXPECT_THAT(IdenticalSizes(kQwen3, Both(32), 8), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(IdenticalSizes(kSmolLm2, Both(32), 1), ElementsAre(1));
  EXPECT_THAT(IdenticalSizes(kSmolLm2, Both(1), 1), ElementsAre(1));
  EXPECT_THAT(IdenticalSizes(kSmolLm2, Both(1), 2), ElementsAre(2));
  // Twelve heads: eight ranks would hold uneven runs.
  EXPECT_THAT(IdenticalSizes(Config(12, 4, 64, 3072, 512), Both(32), 1),
              ElementsAre(1, 2, 4));
}

// Products are summed in blocks counted from the start of each slice, so the
// bits are the same where all slices begin at the same columns.
TEST(IdenticalSizes, BeginTheirSlicesAtTheSameColumns) {
  for (const ModelConfig& config :
       {kSmolLm2, kTiny, kQwen3, Config(12, 4, 64, 3072, 512)}) {
    for (const RowParallelBlocks& blocks : kBlocks) {
      for (const int size : {1, 2, 3, 4, 8}) {
        if (!Divides(blocks, config)) continue;
        if (!MakeShard(config, blocks, 0, size).ok()) continue;
        const SliceBegins expected = SliceBeginsOf(config, blocks, size);
        for (const int same : IdenticalSizes(config, blocks, size)) {
          EXPECT_EQ(SliceBeginsOf(config, blocks, same), expected)
              << config.num_heads << " heads, blocks " << blocks.o << " and "
              << blocks.down << ", sizes " << size << " and " << same;
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
