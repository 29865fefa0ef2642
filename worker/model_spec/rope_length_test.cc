#include "worker/model_spec/rope_length.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
namespace {

using Scaling = RopeConfig::Scaling;

ModelConfig Model(Scaling scaling) {
  ModelConfig config;
  config.max_context = 1024;
  config.rope.scaling = scaling;
  config.rope.original_max_position = 256;
  config.rope.factors = {1, 2};
  config.rope.long_factors = {3, 4};
  return config;
}

ModelConfig Fixed(Scaling scaling, int max_context) {
  ModelConfig config = Model(scaling);
  FixRope(max_context, &config);
  return config;
}

TEST(FixRope, KeepsWhatDoesNotFollowTheLength) {
  for (const Scaling scaling :
       {Scaling::kNone, Scaling::kLinear, Scaling::kLlama3, Scaling::kYarn}) {
    const ModelConfig config = Fixed(scaling, 300);
    EXPECT_EQ(config.max_context, 1024);
    EXPECT_EQ(config.rope.longest_sequence, 0);
    EXPECT_EQ(config.rope.factors, (std::vector<float>{1, 2}));
  }
}

TEST(FixRope, IsAsTrainedUpToTheOriginalContext) {
  for (const int max_context : {0, 100, 256}) {
    for (const Scaling scaling : {Scaling::kDynamic, Scaling::kLongRope}) {
      const ModelConfig config = Fixed(scaling, max_context);
      EXPECT_EQ(config.max_context, 256);
      EXPECT_EQ(config.rope.longest_sequence, 0);
      EXPECT_EQ(config.rope.factors, (std::vector<float>{1, 2}));
    }
  }
}

TEST(FixRope, IsForLongSequencesPastIt) {
  const ModelConfig longrope = Fixed(Scaling::kLongRope, 257);
  EXPECT_EQ(longrope.max_context, 1024);
  EXPECT_EQ(longrope.rope.factors, (std::vector<float>{3, 4}));
  const ModelConfig dynamic = Fixed(Scaling::kDynamic, 257);
  EXPECT_EQ(dynamic.max_context, 1024);
  EXPECT_EQ(dynamic.rope.longest_sequence, 257);
  // What is more than the model can is refused elsewhere.
  EXPECT_EQ(Fixed(Scaling::kDynamic, 5000).rope.longest_sequence, 1024);
}

}  // namespace
}  // namespace lockstep
