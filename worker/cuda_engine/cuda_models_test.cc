// Kinds of models on emulated GPUs, or on the machine's, against the engine of
// the CPU, however they are cut.
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/cuda/cuda_group.h"
#include "tests/testing/device/test_gpu.h"
#include "tests/testing/engine/hand_planned_engine.h"
#include "tests/testing/tiny_model.h"
#include "worker/cuda_engine/cuda_engine.h"
#include "worker/weights/model_files.h"

namespace lockstep {
namespace {

using kernels::Arithmetic;
using testing::CudaGroup;
using testing::HandPlannedEngine;
using testing::HasDevices;
using testing::SomeTokens;
using testing::TinyModel;

constexpr int kNumPages = 48;
constexpr int kPageSize = 4;
constexpr HandPlannedEngine::Pages kPages = {kNumPages, kPageSize};

ModelFiles Write(const std::string& architecture) {
  TinyModel tiny;
  tiny.architecture = architecture;
  const std::string path = ::testing::TempDir() + architecture;
  testing::WriteHuggingFaceFolder(tiny, path);
  auto model = OpenModel(path);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

std::unique_ptr<CudaGroup> MakeGroup(
    TestGpu* gpu, const ModelFiles& model, int size,
    bool expert_parallel = false, Arithmetic arithmetic = Arithmetic::kStrict) {
  auto group = CudaGroup::Create(gpu, model, size,
                                 {.num_pages = kNumPages,
                                  .page_size = kPageSize,
                                  .max_step_tokens = 64,
                                  .max_sequences = 4,
                                  .max_logits_rows = 64,
                                  .arithmetic = arithmetic},
                                 expert_parallel);
  EXPECT_TRUE(group.ok()) << group.status();
  return *std::move(group);
}

// The logits after a prefill and two decodes.
std::vector<std::vector<float>> LogitsOf(HandPlannedEngine engine) {
  const int a = engine.Add(SomeTokens(30, 5));
  engine.Step({{a, 30}});
  engine.Step({{a, 1}});
  engine.Step({{a, 1}});
  return engine.logits(a);
}

void ExpectNear(const std::vector<std::vector<float>>& found,
                const std::vector<std::vector<float>>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t position = 0; position < found.size(); ++position) {
    ASSERT_EQ(found[position].size(), expected[position].size());
    for (size_t i = 0; i < found[position].size(); ++i) {
      ASSERT_NEAR(found[position][i], expected[position][i], 2e-4)
          << "position " << position << ", id " << i;
    }
  }
}

std::vector<std::vector<float>> OnCpu(const ModelFiles& model) {
  return LogitsOf(HandPlannedEngine(
      model, 1, {.engine = {.num_pages = kNumPages, .page_size = kPageSize}}));
}

TEST(CudaModels, NormsGatesAndRotationsAreThoseOfTheCpu) {
  TestGpu gpu(/*devices=*/4);
  for (const char* architecture : {"gemma3", "olmo2"}) {
    const ModelFiles model = Write(architecture);
    const auto expected = OnCpu(model);
    // Of four ranks two have the same key-value head.
    for (int size : {1, 2, 4}) {
      if (!HasDevices(gpu, size)) continue;
      SCOPED_TRACE(absl::StrCat(architecture, " on ", size));
      const auto group = MakeGroup(&gpu, model, size);
      ExpectNear(LogitsOf(PlanByHand(group.get(), kPages)), expected);
    }
  }
}

// Six experts, two a token: with whole ones some of eight ranks have none.
TEST(CudaModels, ExpertsAreThoseOfTheCpuHoweverTheyAreCut) {
  TestGpu gpu(/*devices=*/8);
  const ModelFiles model = Write("qwen2moe");
  const auto expected = OnCpu(model);
  for (const bool expert_parallel : {false, true}) {
    for (int size : {1, 2, 8}) {
      if (!HasDevices(gpu, size)) continue;
      SCOPED_TRACE(
          absl::StrCat(expert_parallel ? "whole on " : "cut on ", size));
      const auto group = MakeGroup(&gpu, model, size, expert_parallel);
      ExpectNear(LogitsOf(PlanByHand(group.get(), kPages)), expected);
    }
  }
}

// Whoever goes to the same experts, and however large the tiles of rows are.
TEST(CudaModels, ATokensExpertsDoNotDependOnTheBatch) {
  TestGpu gpu;
  const ModelFiles model = Write("qwen2moe");
  for (Arithmetic arithmetic : {Arithmetic::kStrict, Arithmetic::kFast}) {
    const auto group = MakeGroup(&gpu, model, 1, false, arithmetic);
    HandPlannedEngine alone = PlanByHand(group.get(), kPages);
    const int a = alone.Add(SomeTokens(20, 3)), b = alone.Add(SomeTokens(9, 7));
    for (int i = 0; i < 20; ++i) alone.Step({{a, 1}});
    alone.Step({{b, 9}});
    alone.Step({{b, 1}});
    HandPlannedEngine mixed = PlanByHand(group.get(), kPages);
    const int c = mixed.Add(SomeTokens(9, 7)), d = mixed.Add(SomeTokens(20, 3));
    mixed.Step({{d, 7}});
    mixed.Step({{c, 9}, {d, 1}});
    mixed.Step({{d, 12}, {c, 1}});
    EXPECT_EQ(alone.logits(a), mixed.logits(d));
    EXPECT_EQ(alone.logits(b), mixed.logits(c));
  }
}

}  // namespace
}  // namespace lockstep
