#include "worker/sampling/token_mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace lockstep {
namespace {

using ::testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(TokenMask, ForbiddenLogitsAreMinusInfinity) {
  const std::vector<uint32_t> mask = {0b01101};
  std::vector<float> masked(5);
  CopyMasked({1, 2, 3, 4, 5}, mask, absl::MakeSpan(masked));
  EXPECT_THAT(masked, ElementsAre(1, -kInfinity, 3, 4, -kInfinity));
  EXPECT_TRUE(Allows(mask, 0));
  EXPECT_FALSE(Allows(mask, 1));
}

TEST(TokenMask, AllowedOnesGoBeforeForbiddenOnesWhateverTheyAre) {
  const std::vector<uint32_t> mask = {0b0110};
  std::vector<float> masked(4);
  CopyMasked({9, -kInfinity, std::nanf(""), 9}, mask, absl::MakeSpan(masked));
  EXPECT_THAT(masked, ElementsAre(-kInfinity, kLeastAllowedLogit,
                                  kLeastAllowedLogit, -kInfinity));
}

TEST(TokenMask, EachIdHasItsBit) {
  constexpr int kSize = 1003;  // not whole words
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::vector<uint32_t> mask((kSize + 31) / 32);
  // Bits beyond the last id say nothing.
  for (uint32_t& word : mask) word = random();
  std::vector<float> logits(kSize), masked(kSize);
  for (float& logit : logits) logit = static_cast<float>(random() % 1000);
  CopyMasked(logits, mask, absl::MakeSpan(masked));
  for (uint32_t id = 0; id < kSize; ++id) {
    EXPECT_EQ(masked[id], Allows(mask, id) ? logits[id] : -kInfinity) << id;
  }
}

}  // namespace
}  // namespace lockstep
