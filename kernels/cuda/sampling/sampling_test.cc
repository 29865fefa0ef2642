// The kernels that choose tokens, by hand and in every order of their threads;
// against the worker's sampler:
// worker/cuda_engine/sampling/sampling_rows_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cuda/argmax.h"
#include "kernels/cuda/kernel_run.h"
#include "kernels/cuda/sampling/adjust.h"
#include "kernels/cuda/sampling/logprobs.h"
#include "kernels/cuda/sampling/sample.h"
#include "kernels/cuda/test_device.h"

namespace lockstep::cuda {
namespace {

using testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr unsigned kSeed = 20;

// All of the vocabulary, at temperature 1.
SampledRow Drawn(double noise) {
  return {.row = 0,
          .temperature = 1,
          .top_k = 0,
          .top_p = 1,
          .min_p = 0,
          .noise = noise};
}

std::vector<uint32_t> Sampled(const std::vector<float>& logits,
                              const std::vector<SampledRow>& rows) {
  const int vocabulary = logits.size() / rows.size();
  return SameInEveryOrder(
      std::vector<uint32_t>(rows.size()), [&](uint32_t* tokens) {
        return SampleTokens(logits.data(), vocabulary, vocabulary, rows.data(),
                            rows.size(), tokens, nullptr);
      });
}

uint32_t SampledOf(const std::vector<float>& logits, const SampledRow& row) {
  return Sampled(logits, {row})[0];
}

TEST(SampleTokens, DrawsInOrderOfId) {
  const std::vector<float> logits = {std::log(3.0f), -kInfinity, std::nanf(""),
                                     std::log(4.0f), std::log(1.0f)};
  const struct {
    double noise;
    uint32_t token;
  } rows[] = {{0, 0},     {0.374, 0}, {0.376, 3},
              {0.874, 3}, {0.876, 4}, {1 - 0x1p-53, 4}};
  for (const auto& row : rows) {
    EXPECT_EQ(SampledOf(logits, Drawn(row.noise)), row.token) << row.noise;
  }
}

TEST(SampleTokens, KeepsTheLowerIdsOfTies) {
  const std::vector<float> logits = {1, 2, 2, 0, 2, 2};
  SampledRow top_k = Drawn(0.99);
  top_k.top_k = 3;
  EXPECT_EQ(SampledOf(logits, top_k), 4);
  SampledRow top_p = Drawn(0.99);
  top_p.top_p = 0.3f;  // the four twos have 0.88 of all
  EXPECT_EQ(SampledOf(logits, top_p), 2);
  top_p.temperature = top_k.temperature = 0;
  EXPECT_EQ(SampledOf(logits, top_k), 1);
}

// What is exactly reached is enough: a half of the sum, by two of four.
TEST(SampleTokens, SumsAreExactAtTheBorder) {
  SampledRow row = Drawn(0.99);
  row.top_p = 0.5f;
  EXPECT_EQ(SampledOf(std::vector<float>(4, 7), row), 1);
  row.top_p = std::nextafter(0.5f, 1.0f);
  EXPECT_EQ(SampledOf(std::vector<float>(4, 7), row), 2);
  EXPECT_EQ(SampledOf(std::vector<float>(4, 7), Drawn(0.5)), 2);
  EXPECT_EQ(SampledOf(std::vector<float>(4, 7), Drawn(0.5 - 0x1p-53)), 1);
}

TEST(SampleTokens, MinPKeepsWhatIsProbableEnough) {
  SampledRow row = Drawn(0.99);
  row.min_p = 0.3f;
  EXPECT_EQ(SampledOf({0, 5, 4, 3, 5, 2}, row), 4);
  row.min_p = 1;
  EXPECT_EQ(SampledOf({0, 5, 4, 3, 5, 2}, row), 4);
  row.noise = 0.49;
  EXPECT_EQ(SampledOf({0, 5, 4, 3, 5, 2}, row), 1);
}

TEST(SampleTokens, WhereNothingIsPossibleAllIs) {
  const std::vector<float> logits = {std::nanf(""), -kInfinity, -kInfinity,
                                     std::nanf("")};
  EXPECT_EQ(SampledOf(logits, Drawn(0.3)), 1);
  EXPECT_EQ(SampledOf(logits, Drawn(0.8)), 3);
  EXPECT_EQ(SampledOf({5, kInfinity, 9, kInfinity}, Drawn(0.7)), 3);
}

TEST(SampleTokens, LeavesARowWithoutAFiniteLogitAlone) {
  const std::vector<float> logits = {std::nanf(""), std::nanf(""), 1, 2};
  const std::vector<SampledRow> drawn = {Drawn(0.7), Drawn(0.99)};
  for (float temperature : {0.0f, 1.0f}) {
    std::vector<SampledRow> rows = drawn;
    for (SampledRow& row : rows) row.temperature = temperature;
    rows[1].row = 1;
    const std::vector<uint32_t> tokens = SameInEveryOrder(
        std::vector<uint32_t>{kNoFiniteLogit, 0}, [&](uint32_t* out) {
          return SampleTokens(logits.data(), 2, 2, rows.data(), rows.size(),
                              out, nullptr);
        });
    EXPECT_THAT(tokens, ElementsAre(kNoFiniteLogit, 1));
  }
}

// Borders in a list of the best and in all of a row, and a list that warps
// write which have more of the row to look at than the one that reads it.
TEST(SampleTokens, NeedsEachBarrier) {
  std::mt19937 random(kSeed);
  const int vocabulary = 3000;
  auto logits = RandomValues<float>(2 * vocabulary, random, 3);
  for (int id = 300; id < vocabulary; ++id) {
    if (id < 2690 || id >= 2880) logits[id] = -kInfinity;
  }
  std::vector<SampledRow> rows(5, Drawn(0.7));
  for (SampledRow& row : rows) row.row = &row - rows.data();
  rows[0].top_k = 510;
  rows[0].temperature = 100;  // so that each of the 490 counts
  rows[0].noise = 0.99;
  rows[1].top_k = 300;
  rows[2].top_p = 0.95f;
  rows[3].top_k = 2000;
  rows[4].noise = 0.95;
  std::vector<float> matrix(logits.begin(), logits.begin() + vocabulary);
  for (size_t row = 1; row < rows.size(); ++row) {
    matrix.insert(matrix.end(), logits.begin() + vocabulary, logits.end());
  }
  ExpectNeedsEachBarrier(
      6, std::vector<uint32_t>(rows.size()), [&](uint32_t* tokens) {
        return SampleTokens(matrix.data(), vocabulary, vocabulary, rows.data(),
                            rows.size(), tokens, nullptr);
      });
}

TEST(SampleTokens, ARowDependsOnItAlone) {
  std::mt19937 random(kSeed);
  const int vocabulary = 700;
  const auto logits = RandomValues<float>(3 * vocabulary, random, 2);
  std::vector<SampledRow> rows;
  for (int row : {2, 0, 1}) {
    rows.push_back(Drawn(0.1 + 0.3 * row));
    rows.back().row = row;
    rows.back().top_p = 0.5f + 0.2f * row;
  }
  const std::vector<uint32_t> together = Sampled(logits, rows);
  for (SampledRow& row : rows) {
    const uint32_t token = together[row.row];
    const auto begin = logits.begin() + row.row * vocabulary;
    row.row = 0;
    EXPECT_EQ(SampledOf({begin, begin + vocabulary}, row), token);
  }
}

// A row of logits, then what was kept of them. All that kernels read lies in
// vectors, which a GPU sees, too.
struct Adjusting {
  std::vector<float> Adjusted() const {
    return SameInEveryOrder(
        Row(), [this](float* row) { return AdjustLogits(Args(row), nullptr); });
  }

  std::vector<float> Row() const {
    std::vector<float> row = logits;
    row.resize(logits.size() + adjustments.size());
    return row;
  }

  AdjustArgs Args(float* row) const {
    return {.logits = row,
            .stride = 0,
            .vocabulary = static_cast<int>(logits.size()),
            .rows = rows.data(),
            .count = 1,
            .adjustments = adjustments.data(),
            .masks = mask.data(),
            .kept = row + logits.size()};
  }

  void Start() {
    rows = {{.row = 0,
             .mask = mask.empty() ? -1 : 0,
             .first_adjustment = 0,
             .num_adjustments = static_cast<int>(adjustments.size()),
             .masks_ids = 1,
             .repetition = 2,
             .presence = 0.5f,
             .frequency = 0.25f}};
  }

  std::vector<float> logits;
  std::vector<LogitAdjustment> adjustments;
  std::vector<uint32_t> mask;
  std::vector<AdjustedRow> rows;
};

TEST(AdjustLogits, AddsThenPenalizesThenMasks) {
  Adjusting row = {.logits = {4, -4, 4, 4, 1},
                   .adjustments = {{4, 100, 0, 1, 1},
                                   {2, 2, 3, 1, 0},
                                   {0, 0, 0, 1, 0},
                                   {1, 1, 0, 1, 0}},
                   .mask = {},
                   .rows = {}};
  row.Start();
  std::vector<float> adjusted = row.Adjusted();
  EXPECT_THAT(adjusted,
              ElementsAre(2, -6, 1.75, 4, -kInfinity, /*kept*/ 1, 4, 4, -4));
  ASSERT_EQ(Completed(RestoreLogits(row.Args(adjusted.data()), nullptr)),
            kCudaSuccess);
  adjusted.resize(5);
  EXPECT_EQ(adjusted, row.logits);
}

TEST(AdjustLogits, TheMaskGoesFirstAndMinTokensGiveWay) {
  Adjusting row = {.logits = {4, std::nanf(""), 7, -kInfinity},
                   .adjustments = {{0, 0, 0, 0, 1}},
                   .mask = {0b1011},
                   .rows = {}};
  row.Start();
  EXPECT_THAT(row.Adjusted(),
              ElementsAre(-kInfinity, -1e30f, -kInfinity, -1e30f, 4));
  row.mask = {0b0001};
  EXPECT_THAT(row.Adjusted(),
              ElementsAre(4, -kInfinity, -kInfinity, -kInfinity, 4));
}

TEST(AdjustLogits, MinTokensGiveWayWithoutAMask) {
  Adjusting row = {.logits = {4, std::nanf(""), -kInfinity},
                   .adjustments = {{0, 0, 0, 0, 1}},
                   .mask = {},
                   .rows = {}};
  row.Start();
  EXPECT_EQ(row.Adjusted()[0], 4);
  row.logits[2] = -9;
  EXPECT_EQ(row.Adjusted()[0], -kInfinity);
}

TEST(AdjustLogits, NeedsEachBarrier) {
  Adjusting row;
  row.logits.assign(1200, 3);
  row.mask.assign(38, 0);
  row.mask[1000 / 32] = 1u << (1000 % 32);
  // By other threads than those that mask these ids, or look at them again.
  row.adjustments = {{1, 0, 0, 0, 1}, {2, 0, 0, 0, 1}, {1000, 0, 0, 0, 1}};
  row.Start();
  ExpectNeedsEachBarrier(3, row.Row(), [&](float* logits) {
    return AdjustLogits(row.Args(logits), nullptr);
  });
}

std::vector<RowLogprobs> Scored(const std::vector<float>& logits,
                                const ScoredRow& row) {
  const std::vector<ScoredRow> rows = {row};
  const std::vector<uint32_t> chosen = {2};
  return SameInEveryOrder(std::vector<RowLogprobs>(1), [&](RowLogprobs* out) {
    return ScoreRows(logits.data(), 0, logits.size(), rows.data(), 1,
                     chosen.data(), out, nullptr);
  });
}

TEST(ScoreRows, SumsAndRanks) {
  const std::vector<float> logits = {1, std::nanf(""), 3, 3, -kInfinity};
  const RowLogprobs chosen = Scored(logits, {0, kChosenToken, 4})[0];
  EXPECT_EQ(chosen.max, 3);
  EXPECT_EQ(chosen.token_logit, 3);
  EXPECT_EQ(chosen.token_rank, 1);
  EXPECT_EQ(chosen.num_top, 4);
  const double sum = chosen.sum_high * 0x1p-16 + chosen.sum_low * 0x1p-80;
  EXPECT_NEAR(sum, 2 + std::exp(-2.0), 1e-7);
  EXPECT_THAT(std::vector<uint32_t>(chosen.top_ids, chosen.top_ids + 4),
              ElementsAre(2, 3, 0, 1));
  EXPECT_EQ(chosen.top_logits[3], -kInfinity);
  const RowLogprobs worst = Scored(logits, {0, 4, kMostTop})[0];
  EXPECT_EQ(worst.token_rank, 5);
  EXPECT_EQ(worst.token_logit, -kInfinity);
  EXPECT_EQ(worst.num_top, 5);
}

TEST(ScoreRows, LeavesOutARowThatHasChosenNothing) {
  const std::vector<float> logits(7, std::nanf(""));
  const std::vector<ScoredRow> rows = {{0, kChosenToken, 3}};
  const std::vector<uint32_t> chosen = {kNoFiniteLogit};
  std::vector<RowLogprobs> out(1);
  out[0].token_rank = 77;
  out = SameInEveryOrder(out, [&](RowLogprobs* made) {
    return ScoreRows(logits.data(), 7, 7, rows.data(), 1, chosen.data(), made,
                     nullptr);
  });
  ASSERT_EQ(out.size(), 1);
  EXPECT_EQ(out[0].token_rank, 77);
}

TEST(ScoreRows, NeedsItsBarrier) {
  std::mt19937 random(kSeed);
  const auto logits = RandomValues<float>(1000, random);
  const ScoredRow row = {0, 7, 5};
  ExpectNeedsEachBarrier(1, std::vector<RowLogprobs>(1), [&](RowLogprobs* out) {
    return ScoreRows(logits.data(), 0, 1000, &row, 1, nullptr, out, nullptr);
  });
}

}  // namespace
}  // namespace lockstep::cuda
