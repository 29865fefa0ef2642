#include "bench/roofline.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "tests/testing/tiny_model.h"
#include "worker/core/sequence.h"
#include "worker/core/step_plan.h"
#include "worker/weights/model_files.h"

namespace lockstep::bench {
namespace {

using kernels::Arithmetic;
using kernels::KvType;

ModelFiles TinyFiles(bool tied_embeddings) {
  testing::TinyModel tiny;
  tiny.tied_embeddings = tied_embeddings;
  tiny.type = kernels::DType::kF32;
  const std::string folder = ::testing::TempDir() + "model";
  testing::WriteHuggingFaceFolder(tiny, folder);
  auto model = OpenModel(folder);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

TEST(ModelCost, CountsEachMatrixOnceAndTheEmbeddingAsTheHead) {
  for (const bool tied_embeddings : {false, true}) {
    const ModelFiles model = TinyFiles(tied_embeddings);
    const auto cost = CostOf(model, KvType::kBF16);
    ASSERT_TRUE(cost.ok()) << cost.status();
    // q and o 128 x 64, k and v 32 x 64, the MLP's three 128 x 64; two layers.
    constexpr double kLayers = 2 * (5 * 128 * 64 + 2 * 32 * 64);
    constexpr double kHead = 512 * 64;
    EXPECT_EQ(cost->layer_bytes, 4 * kLayers);
    EXPECT_EQ(cost->layer_operations, 2 * kLayers);
    EXPECT_EQ(cost->head_bytes, 4 * kHead);
    EXPECT_EQ(cost->head_operations, 2 * kHead);
    EXPECT_EQ(cost->kv_position_bytes, 2 * 2 * 2 * 16 * 2);
    EXPECT_EQ(cost->attention_operations, 4 * 2 * 8 * 16);
    EXPECT_FALSE(cost->is_quantized);
  }
}

// Those that are made, which no file has.
TEST(ModelCost, CountsMatricesThatAreMadeAsTheyAreKept) {
  testing::TinyModel tiny;
  tiny.tied_embeddings = true;
  const std::string folder = ::testing::TempDir() + "rounded";
  testing::WriteHuggingFaceFolder(tiny, folder);
  const auto model =
      OpenModel(folder, 0, {.rounded_to = kernels::DType::kQ4_0});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto cost = CostOf(*model, KvType::kBF16);
  ASSERT_TRUE(cost.ok()) << cost.status();
  // Of 32 values 18 bytes.
  EXPECT_EQ(cost->layer_bytes, 2 * (5 * 128 * 64 + 2 * 32 * 64) / 32 * 18);
  EXPECT_TRUE(cost->is_quantized);
}

TEST(StepWork, CountsWhatEachTokenSees) {
  const auto request = std::make_shared<v1::AddRequest>();
  const Sequence sequence({.request = 1}, request);
  StepPlan plan;
  plan.spans = {
      {.sequence = &sequence, .begin = 2, .count = 3},
      {.sequence = &sequence, .begin = 9, .count = 1, .samples = true}};
  plan.num_tokens = 4;
  plan.num_logits_rows = 1;
  const StepWork work = WorkOf(plan);
  EXPECT_EQ(work.tokens, 4);
  EXPECT_EQ(work.logits_rows, 1);
  EXPECT_EQ(work.kv_positions, 5 + 10);
  EXPECT_EQ(work.attended, 3 + 4 + 5 + 10);
}

constexpr ModelCost kCost = {.layer_bytes = 900,
                             .head_bytes = 100,
                             .kv_position_bytes = 10,
                             .layer_operations = 1000,
                             .head_operations = 200,
                             .attention_operations = 4,
                             .is_quantized = true};
constexpr Ceilings kCeilings = {.threads = 1,
                                .fp32 = 10,
                                .bf16 = 20,
                                .int16 = 15,
                                .int8 = 60,
                                .dram_read = 5,
                                .l3_read = 50,
                                .l3_bytes = 1050};

TEST(Roof, OfFewTokensIsTheirBytes) {
  const StepWork decode = {
      .tokens = 1, .logits_rows = 1, .kv_positions = 6, .attended = 6};
  const Roof dram = RoofOf(decode, kCost, Arithmetic::kFast, kCeilings);
  EXPECT_STREQ(dram.bound, "DRAM");
  EXPECT_EQ(dram.seconds, (900 + 100 + 60) / 5.0);

  // The head is not read where nothing is sampled; so the rest fits L3.
  Ceilings slow_l3 = kCeilings;
  slow_l3.l3_read = 6;
  const StepWork silent = {.tokens = 1, .kv_positions = 6, .attended = 6};
  const Roof l3 = RoofOf(silent, kCost, Arithmetic::kFast, slow_l3);
  EXPECT_STREQ(l3.bound, "L3");
  EXPECT_EQ(l3.seconds, (900 + 60) / 6.0);
}

TEST(Roof, OfManyTokensIsTheirOperations) {
  const StepWork prefill = {
      .tokens = 100, .logits_rows = 1, .kv_positions = 100, .attended = 5000};
  const double operations = 100 * 1000 + 200, attention = 5000 * 4 / 10.0;
  ModelCost plain = kCost;
  plain.is_quantized = false;

  const Roof int8 = RoofOf(prefill, kCost, Arithmetic::kFast, kCeilings);
  EXPECT_STREQ(int8.bound, "int8");
  EXPECT_EQ(int8.seconds, operations / 30 + attention);
  const Roof bf16 = RoofOf(prefill, plain, Arithmetic::kFast, kCeilings);
  EXPECT_STREQ(bf16.bound, "bf16");
  EXPECT_EQ(bf16.seconds, operations / 20 + attention);
  const Roof fp32 = RoofOf(prefill, kCost, Arithmetic::kStrict, kCeilings);
  EXPECT_STREQ(fp32.bound, "fp32");
  EXPECT_EQ(fp32.seconds, operations / 10 + attention);
}

}  // namespace
}  // namespace lockstep::bench
