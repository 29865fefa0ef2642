#include "worker/layers/output_head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/weights/dtype.h"
#include "kernels/weights/packed_matrix.h"
#include "tests/testing/local_ranks.h"
#include "worker/layers/rank_context.h"
#include "worker/weights/model_weights.h"

namespace lockstep {
namespace {

constexpr int kVocab = 37;
constexpr int kDim = 16;
constexpr int kTokens = 6;

float Value(int i, int j) { return static_cast<float>((i * 31 + j * 7) % 13); }

std::vector<float> Matrix(int rows) {
  std::vector<float> values;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < kDim; ++j) values.push_back(Value(i, j) - 6);
  }
  return values;
}

// Logits of `tokens` on `size` ranks, one row each.
std::vector<std::vector<float>> LogitsOn(int size,
                                         const std::vector<int32_t>& tokens) {
  const std::vector<float> head = Matrix(kVocab);
  const std::vector<float> hidden = Matrix(kTokens);
  ModelConfig config;
  config.vocab_size = kVocab;
  config.hidden_size = kDim;
  config.norm_eps = 1e-5;
  auto ranks = testing::LocalRanks::Create(size);
  EXPECT_TRUE(ranks.ok()) << ranks.status();
  std::vector<std::vector<std::vector<float>>> logits(size);
  const absl::Status status =
      (*ranks)->Run([&](const testing::LocalRank& local) {
        Shard shard;
        shard.rank = local.rank;
        shard.size = size;
        shard.vocab_rows = (kVocab + size - 1) / size;
        shard.vocab_begin = local.rank * shard.vocab_rows;
        ModelWeights weights;
        weights.final_norm.assign(kDim, 1.0f);
        weights.head = kernels::PackedMatrix(kDim, kDim);
        const int rows = std::min(shard.vocab_rows, kVocab - shard.vocab_begin);
        weights.head.AddRows(kernels::DType::kF32, rows,
                             head.data() + shard.vocab_begin * kDim,
                             kDim * sizeof(float), /*col_begin=*/0);
        const RankContext rank = {&config, &shard, local.ops, local.collective};
        OutputHead output_head(rank, kTokens);
        const absl::Status status =
            output_head.Forward(weights, hidden.data(), tokens);
        for (size_t i = 0; i < tokens.size(); ++i) {
          std::vector<float> scratch(kVocab);
          const absl::Span<const float> row =
              output_head.Logits(i, absl::MakeSpan(scratch));
          logits[local.rank].emplace_back(row.begin(), row.end());
        }
        EXPECT_EQ(local.collective->num_all_gathers(), tokens.empty() ? 0 : 1);
        return status;
      });
  EXPECT_TRUE(status.ok()) << status;
  for (int rank = 1; rank < size; ++rank) EXPECT_EQ(logits[rank], logits[0]);
  return logits[0];
}

TEST(OutputHead, ProjectsTheNormOfTheWantedTokens) {
  const auto logits = LogitsOn(1, {4, 1});
  ASSERT_EQ(logits.size(), 2);
  const std::vector<float> hidden = Matrix(kTokens), head = Matrix(kVocab);
  for (int row = 0; row < 2; ++row) {
    const float* x = hidden.data() + (row == 0 ? 4 : 1) * kDim;
    double squares = 0;
    for (int j = 0; j < kDim; ++j) squares += x[j] * x[j];
    for (int i = 0; i < kVocab; ++i) {
      double dot = 0;
      for (int j = 0; j < kDim; ++j) dot += x[j] * head[i * kDim + j];
      EXPECT_NEAR(logits[row][i], dot / std::sqrt(squares / kDim + 1e-5), 1e-4);
    }
  }
}

TEST(OutputHead, IsTheSameOnEveryNumberOfRanks) {
  const auto expected = LogitsOn(1, {0, 5, 2});
  for (const int size : {2, 3, 4, 8}) {
    EXPECT_EQ(LogitsOn(size, {0, 5, 2}), expected) << size << " ranks";
  }
}

TEST(OutputHead, NoRowsNoGather) { EXPECT_TRUE(LogitsOn(2, {}).empty()); }

}  // namespace
}  // namespace lockstep
