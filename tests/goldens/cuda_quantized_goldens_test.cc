// Tiny checkpoints in each of Hugging Face's quantized formats on GPUs:
// emulated ones, or those of the machine.
#include <absl/strings/match.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <iostream>
#include <utility>

#include "tests/goldens/golden_comparison.h"
#include "tests/goldens/golden_runner.h"
#include "tests/goldens/golden_set.h"
#include "tests/goldens/tolerance.h"
#include "tests/testing/cuda/cuda_group.h"
#include "tests/testing/device/test_gpu.h"
#include "worker/device/cuda_driver.h"
#include "worker/weights/model_files.h"

namespace lockstep::goldens {
namespace {

using ::lockstep::testing::CudaGroup;

void ExpectAgrees(TestGpu* gpu, const GoldenCase& golden, int size,
                  bool expert_parallel) {
  const auto model = OpenModel(golden.model_path, golden.max_context);
  ASSERT_TRUE(model.ok()) << model.status();
  const SchedulerOptions steps = StepsOf(model->config, golden.prompts);
  const auto group =
      CudaGroup::Create(gpu, *model, size,
                        {.num_pages = steps.num_pages,
                         .page_size = steps.page_size,
                         .max_step_tokens = steps.max_step_tokens,
                         .max_sequences = steps.max_sequences,
                         .max_logits_rows = steps.max_logits_rows},
                        expert_parallel);
  ASSERT_TRUE(group.ok()) << group.status();
  const auto show = [&](ModelEngine::LogitsObserver observer) {
    (*group)->engine(/*rank=*/0).set_logits_observer(std::move(observer));
  };
  const auto answers = AnswerWith(group->get(), show, steps, golden.prompts);
  ASSERT_TRUE(answers.ok()) << answers.status();
  const Tolerance tolerance = ToleranceFor(golden, Numerics());
  Comparison comparison;
  for (size_t i = 0; i < golden.prompts.size(); ++i) {
    Add(golden.prompts[i], (*answers)[i], tolerance, &comparison);
  }
  EXPECT_TRUE(Agrees(comparison, tolerance)) << Describe(comparison);
  std::cout << golden.name << " on " << size << ": " << Describe(comparison)
            << std::endl;
}

// The mixture on two ranks as well, with parts of experts and with whole ones.
TEST(CudaQuantizedGoldens, Agree) {
  TestGpu gpu(/*devices=*/2);
  const auto driver = CudaDriver::Load(gpu.cuda_library());
  ASSERT_TRUE(driver.ok()) << driver.status();
  const auto cases = FindGoldens("tests/goldens/quantized", "");
  ASSERT_TRUE(cases.ok()) << cases.status();
  EXPECT_GT(cases->size(), 5);
  int mixtures = 0;
  for (const GoldenCase& golden : *cases) {
    SCOPED_TRACE(golden.name);
    ExpectAgrees(&gpu, golden, 1, /*expert_parallel=*/false);
    if (!absl::StrContains(golden.name, "experts")) continue;
    ++mixtures;
    if ((*driver)->num_devices() < 2) continue;
    for (const bool expert_parallel : {false, true}) {
      ExpectAgrees(&gpu, golden, 2, expert_parallel);
    }
  }
  EXPECT_GT(mixtures, 0);
}

}  // namespace
}  // namespace lockstep::goldens
