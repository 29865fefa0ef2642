#include "worker/layers/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "worker/model_spec/model_config.h"
#include "worker/model_spec/rope_length.h"

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

struct AtContext {
  int max_context;
  std::vector<float> frequencies;
};

// The frequencies of some pairs, by the longest sequence.
void ExpectFrequencies(const ModelConfig& model, const std::vector<int>& pairs,
                       const std::vector<AtContext>& expected) {
  for (const auto& [max_context, of_pairs] : expected) {
    ModelConfig config = model;
    FixRope(max_context, &config);
    const std::vector<double> found = RopeFrequencies(config.rope);
    for (size_t i = 0; i < pairs.size(); ++i) {
      EXPECT_NEAR(found[pairs[i]], of_pairs[i], 2e-6 * of_pairs[i])
          << "context " << max_context << ", pair " << pairs[i];
    }
  }
}

// Values of Hugging Face's transformers for sequences of these lengths.
TEST(RopeTable, DynamicGrowsThetaWithTheContext) {
  ModelConfig model;
  model.max_context = 4 * 2048;
  model.rope.rotary_dim = 128;
  model.rope.scaling = RopeConfig::Scaling::kDynamic;
  model.rope.factor = 4;
  model.rope.original_max_position = 2048;
  const std::vector<float> as_trained = {1, 0.865964353, 0.0562341288,
                                         0.00316227786, 0.000115478193};
  ExpectFrequencies(
      model, {0, 1, 20, 40, 63},
      {{0, as_trained},
       {1, as_trained},
       {2048, as_trained},
       {2049, {1, 0.865937531, 0.0561993085, 0.00315836235, 0.000115253097}},
       {4096, {1, 0.844122052, 0.0337368697, 0.00113817619, 2.30956375e-05}},
       {8192, {1, 0.831415951, 0.0249096267, 0.000620489416, 8.88293835e-06}}});
}

TEST(RopeTable, LongRopeTakesItsFactorsByTheContext) {
  ModelConfig model;
  model.max_context = 131072;
  model.rope.rotary_dim = 16;
  model.rope.scaling = RopeConfig::Scaling::kLongRope;
  model.rope.attention_factor = LongRopeAttentionFactor(32, 4096);
  model.rope.original_max_position = 4096;
  for (int pair = 0; pair < 8; ++pair) {
    model.rope.factors.push_back(1 + 0.0625f * pair);
    model.rope.long_factors.push_back(1 + 0.5f * pair);
  }
  EXPECT_FLOAT_EQ(model.rope.attention_factor, 1.19023807);
  const std::vector<float> as_trained = {1, 0.297626138, 0.00800000038,
                                         0.000219984548};
  const std::vector<float> stretched = {1, 0.210818499, 0.00333333341,
                                        7.02728357e-05};
  ExpectFrequencies(model, {0, 1, 4, 7},
                    {{0, as_trained},
                     {4096, as_trained},
                     {4097, stretched},
                     {131072, stretched}});
  const RopeTable table(model.rope, 2);
  EXPECT_FLOAT_EQ(table.cos()[0], 1.19023807);
}

}  // namespace
}  // namespace lockstep
