// A real scheduler on engines of emulated GPUs, or the machine's, with a model
// that computes NaN from one of its ids: the requests that have it end, and no
// other one notices, with one step in flight and with two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/weights/arithmetic.h"
#include "proto/group.pb.h"
#include "tests/testing/cuda/cuda_group.h"
#include "tests/testing/device/test_gpu.h"
#include "tests/testing/output_recorder.h"
#include "tests/testing/scheduler_driver.h"
#include "tests/testing/tiny_model.h"
#include "worker/core/step_plan.h"
#include "worker/cuda_engine/cuda_engine.h"
#include "worker/scheduler/scheduler.h"
#include "worker/weights/model_files.h"

namespace lockstep {
namespace {

using kernels::Arithmetic;
using testing::CudaGroup;
using ::testing::ElementsAre;
using testing::HasDevices;
using ::testing::IsEmpty;
using testing::SomeTokens;

constexpr uint32_t kBadToken = 500;
constexpr int kBadPlace = 5;

// So few pages that those of one request are soon another's.
constexpr SchedulerOptions kScheduler = {.num_pages = 12,
                                         .page_size = 4,
                                         .max_step_tokens = 16,
                                         .max_sequences = 3,
                                         .max_logits_rows = 16,
                                         .max_context = 40,
                                         .host_samples = true};

v1::AddRequest Good(float temperature = 0) {
  v1::AddRequest request = MakeRequest(SomeTokens(14, 3), 8);
  request.mutable_sampling()->set_temperature(temperature);
  request.mutable_sampling()->set_logprobs_plus_one(2);
  return request;
}

v1::AddRequest Bad() {
  v1::AddRequest request = MakeRequest(SomeTokens(14, 8), 8);
  request.mutable_sampling()->set_temperature(0);
  request.set_prompt_token_ids(kBadPlace, kBadToken);
  return request;
}

// What the device chooses or scores alone, and what the host has a part of.
std::vector<v1::AddRequest> BadOnes() {
  std::vector<v1::AddRequest> all(6, Bad());
  all[1].mutable_sampling()->set_temperature(1);
  all[2].mutable_sampling()->set_temperature(1);
  all[2].mutable_sampling()->set_top_k(50);
  all[2].mutable_sampling()->set_top_p(0.9f);
  all[2].mutable_sampling()->set_logprobs_plus_one(3);
  all[3].mutable_sampling()->set_min_tokens(3);
  all[3].mutable_sampling()->add_stop_token_ids(7);
  all[3].mutable_sampling()->set_logprobs_plus_one(1);
  all[4].mutable_sampling()->set_prompt_logprobs_plus_one(2);
  all[5].mutable_sampling()->set_frequency_penalty(1);
  return all;
}

struct Case {
  std::string architecture;
  int ranks = 1;
  int steps_in_flight = 1;
  Arithmetic arithmetic = Arithmetic::kStrict;
};

class CudaNotFiniteTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const Case& of = GetParam();
    if (!HasDevices(gpu_, of.ranks)) GTEST_SKIP() << "too few devices";
    testing::TinyModel tiny;
    tiny.architecture = of.architecture;
    tiny.vocab_size = 501;  // padded on two ranks
    tiny.nan_token_id = kBadToken;
    const std::string path = ::testing::TempDir() + "model";
    testing::WriteHuggingFaceFolder(tiny, path);
    auto model = OpenModel(path);
    ASSERT_TRUE(model.ok()) << model.status();
    model_.emplace(*std::move(model));
    auto group =
        CudaGroup::Create(&gpu_, *model_, of.ranks,
                          {.num_pages = kScheduler.num_pages,
                           .page_size = kScheduler.page_size,
                           .max_step_tokens = kScheduler.max_step_tokens,
                           .max_sequences = kScheduler.max_sequences,
                           .max_logits_rows = kScheduler.max_logits_rows,
                           .arithmetic = of.arithmetic});
    ASSERT_TRUE(group.ok()) << group.status();
    group_ = *std::move(group);
    SchedulerOptions options = kScheduler;
    options.steps_in_flight = of.steps_in_flight;
    driver_.emplace(options, group_.get());
    if (gpu_.fake() != nullptr) gpu_.fake()->Delay(/*seed=*/1, /*most_us=*/50);
  }

  const OutputRecorder::Record& Of(uint64_t request) {
    return driver_->outputs().of({.request = request});
  }

  // Of all tokens, too.
  std::string Told(uint64_t request) {
    std::string told;
    for (const v1::PositionLogprobs& logprobs : Of(request).logprobs) {
      told += logprobs.SerializeAsString();
    }
    return told;
  }

  // How many steps read a token on the device.
  int RunUntilIdle() {
    int overlapped = 0;
    while (driver_->scheduler().HasWork()) {
      const StepPlan plan = driver_->Step();
      overlapped += std::any_of(
          plan.spans.begin(), plan.spans.end(),
          [](const SequenceSpan& span) { return span.token_from >= 0; });
    }
    return overlapped;
  }

  TestGpu gpu_{/*devices=*/2};
  std::optional<ModelFiles> model_;
  std::unique_ptr<CudaGroup> group_;
  std::optional<SchedulerDriver> driver_;
};

TEST_P(CudaNotFiniteTest, EndsTheRequestAndNoOther) {
  std::vector<std::string> alone;
  for (const float temperature : {0.0f, 1.0f}) {
    const uint64_t request = driver_->Add(Good(temperature));
    RunUntilIdle();
    alone.push_back(Told(request));
    ASSERT_EQ(Of(request).tokens.size(), 8);
  }
  uint64_t ended = 0;
  // Over pages that were NaN before, too.
  for (const v1::AddRequest& request : BadOnes()) {
    SCOPED_TRACE(request.sampling().ShortDebugString());
    const uint64_t bad = driver_->Add(request);
    const uint64_t greedy = driver_->Add(Good());
    const uint64_t drawn = driver_->Add(Good(1));
    RunUntilIdle();
    EXPECT_EQ(Of(bad).reason, v1::NOT_FINITE);
    EXPECT_THAT(Of(bad).tokens, IsEmpty());
    EXPECT_THAT(Of(bad).prompt_logprobs, IsEmpty());
    EXPECT_EQ(Told(greedy), alone[0]);
    EXPECT_EQ(Told(drawn), alone[1]);
    EXPECT_EQ(driver_->scheduler().stats().not_finite, ++ended);
  }
}

// The next step, which is in flight by then, reads on the device that nothing
// was chosen.
TEST_P(CudaNotFiniteTest, EndsWhileTheNextStepIsInFlight) {
  const uint64_t bad = driver_->Add(Bad());
  EXPECT_EQ(RunUntilIdle(), GetParam().steps_in_flight - 1);
  EXPECT_EQ(Of(bad).reason, v1::NOT_FINITE);
  EXPECT_THAT(Of(bad).tokens, IsEmpty());
  EXPECT_EQ(driver_->scheduler().stats().cached_pages, 0);
}

// The id that spoils the sequence is its own first token, which the next step
// reads where the device has chosen it.
TEST_P(CudaNotFiniteTest, EndsAtTheTokenAfterTheOneThatSpoilsIt) {
  v1::AddRequest request = Good();
  request.mutable_sampling()->add_bias_token_ids(kBadToken);
  request.mutable_sampling()->add_bias_values(1e6f);
  const uint64_t alone = driver_->Add(Good());
  RunUntilIdle();
  const uint64_t spoiled = driver_->Add(request);
  const uint64_t beside = driver_->Add(Good());
  RunUntilIdle();
  EXPECT_EQ(Of(spoiled).reason, v1::NOT_FINITE);
  EXPECT_THAT(Of(spoiled).tokens, ElementsAre(kBadToken));
  EXPECT_EQ(Told(beside), Told(alone));
}

TEST_P(CudaNotFiniteTest, EndsAnEmbeddingAndNoOther) {
  for (const v1::Pooling pooling : {v1::LAST_TOKEN, v1::MEAN}) {
    const uint64_t alone = driver_->Add(ToEmbed(Good(), pooling, 8));
    RunUntilIdle();
    const uint64_t bad = driver_->Add(ToEmbed(Bad(), pooling, 8));
    const uint64_t good = driver_->Add(ToEmbed(Good(), pooling, 8));
    RunUntilIdle();
    EXPECT_EQ(Of(bad).reason, v1::NOT_FINITE);
    EXPECT_THAT(Of(bad).embedding, IsEmpty());
    EXPECT_EQ(Of(good).reason, v1::STOP);
    EXPECT_EQ(Of(good).embedding, Of(alone).embedding);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, CudaNotFiniteTest,
    ::testing::Values(Case{"qwen3", 1, 1}, Case{"qwen3", 1, 2},
                      Case{"qwen3", 2, 2},
                      Case{"qwen3", 1, 2, Arithmetic::kFast},
                      Case{"qwen2moe", 1, 2}));

}  // namespace
}  // namespace lockstep
