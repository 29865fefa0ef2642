#include "worker/layers/embedding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/testing/local_ranks.h"
#include "worker/layers/rank_context.h"
#include "worker/weights/model_weights.h"

namespace lockstep {
namespace {

constexpr int kVocab = 10;
constexpr int kDim = 4;

// Row i is i + j / 8, but column 1 is -0.
std::vector<float> MakeTable() {
  std::vector<float> table;
  for (int i = 0; i < kVocab; ++i) {
    for (int j = 0; j < kDim; ++j) {
      table.push_back(j == 1 ? -0.0f : i + j / 8.0f);
    }
  }
  return table;
}

// 10 rows over `size` ranks, the last one padded.
std::vector<float> EmbedOn(int size, const std::vector<uint32_t>& ids) {
  const std::vector<float> table = MakeTable();
  ModelConfig config;
  config.vocab_size = kVocab;
  config.hidden_size = kDim;
  auto ranks = testing::LocalRanks::Create(size);
  EXPECT_TRUE(ranks.ok()) << ranks.status();
  std::vector<std::vector<float>> hidden(
      size, std::vector<float>(ids.size() * kDim, 77.0f));
  const absl::Status status =
      (*ranks)->Run([&](const testing::LocalRank& local) {
        Shard shard;
        shard.rank = local.rank;
        shard.size = size;
        shard.vocab_rows = (kVocab + size - 1) / size;
        shard.vocab_begin = local.rank * shard.vocab_rows;
        ModelWeights weights;
        weights.embedding = reinterpret_cast<const uint8_t*>(
            table.data() + shard.vocab_begin * kDim);
        weights.embedding_row_bytes = kDim * sizeof(float);
        weights.embedding_rows =
            std::min(shard.vocab_rows, kVocab - shard.vocab_begin);
        const RankContext rank = {&config, &shard, local.ops, local.collective};
        return Embed(rank, weights, ids, hidden[local.rank].data());
      });
  EXPECT_TRUE(status.ok()) << status;
  for (int rank = 1; rank < size; ++rank) EXPECT_EQ(hidden[rank], hidden[0]);
  return hidden[0];
}

TEST(Embedding, EveryRankGetsTheIdsRows) {
  const std::vector<uint32_t> ids = {9, 0, 3, 3, 7};
  for (int size = 1; size <= 4; ++size) {
    SCOPED_TRACE(size);
    const std::vector<float> hidden = EmbedOn(size, ids);
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(hidden[i * kDim], ids[i]);
      EXPECT_EQ(hidden[i * kDim + 3], ids[i] + 3 / 8.0f);
    }
  }
}

TEST(Embedding, HasTheSameBitsOnEveryNumberOfRanks) {
  for (int size = 1; size <= 4; ++size) {
    const std::vector<float> hidden = EmbedOn(size, {5});
    EXPECT_FALSE(std::signbit(hidden[1])) << size << " ranks";
  }
}

}  // namespace
}  // namespace lockstep
