#include "worker/layers/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "worker/model_spec/model_config.h"

namespace lockstep {
namespace {

RopeConfig Plain() {
  RopeConfig config;
  config.theta = 10000;
  config.rotary_dim = 8;
  return config;
}

TEST(RopeTable, FrequenciesFallGeometrically) {
  const std::vector<double> frequencies = RopeFrequencies(Plain());
  ASSERT_EQ(frequencies.size(), 4);
  EXPECT_DOUBLE_EQ(frequencies[0], 1.0);
  EXPECT_DOUBLE_EQ(frequencies[1], 0.1);
  EXPECT_DOUBLE_EQ(frequencies[2], 0.01);
  EXPECT_DOUBLE_EQ(frequencies[3], 0.001);
}

TEST(RopeTable, HoldsCosineAndSineOfEveryPosition) {
  const RopeTable table(Plain(), 300);
  EXPECT_EQ(table.num_positions(), 300);
  for (int pair = 0; pair < 4; ++pair) {
    EXPECT_EQ(table.cos()[pair], 1.0f);
    EXPECT_EQ(table.sin()[pair], 0.0f);
    const double angle = 299 * std::pow(10.0, -pair);
    EXPECT_FLOAT_EQ(table.cos()[299 * 4 + pair], std::cos(angle));
    EXPECT_FLOAT_EQ(table.sin()[299 * 4 + pair], std::sin(angle));
  }
}

// Values of Hugging Face's transformers for Llama 3.1: theta 500000, head size
// 128, factor 8, low 1, high 4, 8192 positions.
TEST(RopeTable, ScalesAsLlama3) {
  RopeConfig config;
  config.theta = 500000;
  config.rotary_dim = 128;
  config.scaling = RopeConfig::Scaling::kLlama3;
  config.factor = 8;
  config.low_freq_factor = 1;
  config.high_freq_factor = 4;
  config.original_max_position = 8192;
  const std::vector<double> frequencies = RopeFrequencies(config);
  EXPECT_FLOAT_EQ(frequencies[0], 1);
  EXPECT_FLOAT_EQ(frequencies[20], 0.0165604409);
  EXPECT_FLOAT_EQ(frequencies[29], 0.00216657063);
  EXPECT_FLOAT_EQ(frequencies[32], 0.000524846022);
  EXPECT_FLOAT_EQ(frequencies[34], 0.000178507791);
  EXPECT_FLOAT_EQ(frequencies[36], 7.78465546e-05);
  EXPECT_FLOAT_EQ(frequencies[63], 3.06892588e-07);
}

}  // namespace
}  // namespace lockstep
