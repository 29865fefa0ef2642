#include "worker/sampling/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using ::testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<uint32_t> Ids(Candidates& candidates) {
  const absl::Span<const uint32_t> ids = candidates.ids();
  return {ids.begin(), ids.end()};
}

// Sorts everything, as the definitions read.
class NaiveCandidates {
 public:
  NaiveCandidates(const std::vector<float>& logits, float temperature)
      : order_(logits.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
      return logits[a] > logits[b];
    });
    for (const uint32_t id : order_) {
      weights_.push_back(std::exp((double{logits[id]} - logits[order_[0]]) /
                                  double{temperature}));
    }
  }

  void KeepTopK(uint32_t k) { Truncate(k); }

  void KeepTopP(float p) {
    const double target =
        p * std::accumulate(weights_.begin(), weights_.end(), 0.0);
    double sum = 0;
    size_t count = 0;
    while (count < weights_.size() && sum < target) sum += weights_[count++];
    Truncate(count);
  }

  void KeepMinP(float min_p) {
    size_t count = 0;
    while (count < weights_.size() && weights_[count] >= min_p) ++count;
    Truncate(count);
  }

  std::vector<uint32_t> Ids() const {
    std::vector<uint32_t> ids = order_;
    std::sort(ids.begin(), ids.end());
    return ids;
  }

 private:
  void Truncate(size_t count) {
    if (count >= order_.size()) return;
    order_.resize(count);
    weights_.resize(count);
  }

  std::vector<uint32_t> order_;
  std::vector<double> weights_;
};

TEST(CandidatesTest, KeepsTheBestOfTiesByLowerId) {
  const std::vector<float> logits = {1, 3, 2, 3, 2, 2};
  Candidates candidates(6);
  candidates.Reset(logits, 1);
  candidates.KeepTopK(4);
  EXPECT_THAT(Ids(candidates), ElementsAre(1, 2, 3, 4));
  candidates.KeepTopK(3);
  EXPECT_THAT(Ids(candidates), ElementsAre(1, 2, 3));
  candidates.KeepTopK(1);
  EXPECT_THAT(Ids(candidates), ElementsAre(1));
}

TEST(CandidatesTest, TopPKeepsTheFewestThatReachIt) {
  const std::vector<float> logits(4, 2.5f);  // a quarter each
  Candidates candidates(4);
  struct {
    float p;
    int count;
  } rows[] = {{1e-30f, 1}, {0.25f, 1}, {0.26f, 2}, {0.5f, 2},
              {0.75f, 3},  {0.76f, 4}, {0.99f, 4}, {1.0f, 4}};
  for (const auto& row : rows) {
    candidates.Reset(logits, 1);
    candidates.KeepTopP(row.p);
    EXPECT_EQ(candidates.ids().size(), row.count) << row.p;
    EXPECT_EQ(candidates.ids().front(), 0);
  }
}

TEST(CandidatesTest, TopPCountsAfterTopK) {
  // Of a half, a quarter and twice an eighth, the first two are two thirds and
  // one third.
  const float ln2 = std::log(2.0f);
  const std::vector<float> logits = {-2 * ln2, 0, -2 * ln2, -ln2};
  Candidates candidates(4);
  candidates.Reset(logits, 1);
  candidates.KeepTopK(2);
  candidates.KeepTopP(0.6f);
  EXPECT_THAT(Ids(candidates), ElementsAre(1));
}

TEST(CandidatesTest, MinPIsRelativeToTheBest) {
  const float ln2 = std::log(2.0f);
  const std::vector<float> logits = {7, 7 - ln2 * 0.9f, 7 - ln2 * 1.1f};
  Candidates candidates(3);
  candidates.Reset(logits, 1);
  candidates.KeepMinP(0.5f);
  EXPECT_THAT(Ids(candidates), ElementsAre(0, 1));
  candidates.KeepMinP(1);
  EXPECT_THAT(Ids(candidates), ElementsAre(0));
}

TEST(CandidatesTest, AgreesWithSortingEverything) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const int size = 1 + static_cast<int>(random() % 3000);
    const bool has_ties = random() % 3 == 0;
    const float spread = std::uniform_real_distribution<float>(0, 20)(random);
    std::normal_distribution<float> normal(0, spread);
    std::vector<float> logits(size);
    for (float& logit : logits) {
      logit = has_ties ? std::round(normal(random)) : normal(random);
    }
    const float temperature =
        std::uniform_real_distribution<float>(0.05f, 3)(random);
    Candidates candidates(size);
    NaiveCandidates naive(logits, temperature);
    candidates.Reset(logits, temperature);
    if (random() % 2 == 0) {
      const uint32_t k = 1 + random() % 200;
      candidates.KeepTopK(k);
      naive.KeepTopK(k);
    }
    if (random() % 2 == 0) {
      // Not a sum of equal weights, where the last bit decides.
      const float p =
          std::uniform_real_distribution<float>(0.01f, 0.999f)(random);
      candidates.KeepTopP(p);
      naive.KeepTopP(p);
    }
    // Below it, weights are zero.
    const float min_p = random() % 2 == 0 ? 1e-30f : 0.03f;
    candidates.KeepMinP(min_p);
    naive.KeepMinP(min_p);
    ASSERT_EQ(Ids(candidates), naive.Ids());
  }
}

TEST(CandidatesTest, DrawsTheIdAtTheRunningSum) {
  const std::vector<float> logits = {1, -kInfinity, 1, 1, 1};
  Candidates candidates(5);
  candidates.Reset(logits, 1);
  EXPECT_EQ(candidates.Draw(0), 0);
  EXPECT_EQ(candidates.Draw(0.2499), 0);
  EXPECT_EQ(candidates.Draw(0.25), 2);
  EXPECT_EQ(candidates.Draw(0.5), 3);
  EXPECT_EQ(candidates.Draw(0.75), 4);
  EXPECT_EQ(candidates.Draw(1 - 0x1p-53), 4);
}

TEST(CandidatesTest, TakesExtremeLogitsAndTemperatures) {
  struct {
    std::vector<float> logits;
    float temperature;
    std::vector<uint32_t> kept;  // by top-k 2
  } rows[] = {
      {{kInfinity, 3, kInfinity, kInfinity}, 1, {0, 2}},
      {{-kInfinity, -kInfinity, -kInfinity, -kInfinity}, 1, {0, 1}},
      {{0, 5, 4.999f, 3}, 1e-42f, {1}},
      {{3e38f, -3e38f, 2e38f, 0}, 100, {0}},
      {{1, 2, 3, 4}, 100, {2, 3}},
      {{0, -0.0f, 0, -0.0f}, 1, {0, 1}},
      {{1e-45f, 0, 0, 0}, 1, {0, 1}},
  };
  for (const auto& row : rows) {
    Candidates candidates(4);
    candidates.Reset(row.logits, row.temperature);
    candidates.KeepTopK(2);
    EXPECT_EQ(Ids(candidates), row.kept);
    candidates.KeepTopP(0.01f);
    candidates.KeepMinP(0.5f);
    EXPECT_THAT(Ids(candidates),
                ElementsAre(row.kept.front() == 2 ? 3 : row.kept.front()));
  }
}

}  // namespace
}  // namespace lockstep
