// A real scheduler on real engines, ranks as threads, of a model that computes
// NaN from one of its ids: the requests that have it end, and no other one
// notices.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention/kv_type.h"
#include "kernels/weights/arithmetic.h"
#include "proto/group.pb.h"
#include "tests/testing/engine_group.h"
#include "tests/testing/output_recorder.h"
#include "tests/testing/scheduler_driver.h"
#include "tests/testing/tiny_model.h"
#include "worker/scheduler/scheduler.h"
#include "worker/weights/model_files.h"

namespace lockstep {
namespace {

using testing::EngineGroup;
using ::testing::IsEmpty;

constexpr uint32_t kBadToken = 500;

// So few pages that those of one request are soon another's.
constexpr SchedulerOptions kScheduler = {.num_pages = 12,
                                         .page_size = 4,
                                         .max_step_tokens = 16,
                                         .max_sequences = 3,
                                         .max_logits_rows = 16,
                                         .max_context = 40};

v1::AddRequest Good(float temperature = 0) {
  v1::AddRequest request = MakeRequest(TokenRun(20, 14), 8);
  request.mutable_sampling()->set_temperature(temperature);
  return request;
}

// `place` is the bad id's in a prompt of 14.
v1::AddRequest Bad(int place) {
  v1::AddRequest request = MakeRequest(TokenRun(40, 14), 8);
  request.set_prompt_token_ids(place, kBadToken);
  return request;
}

// Several ranks must agree.
struct Case {
  int ranks = 1;
  std::string architecture = "llama";
  kernels::Arithmetic arithmetic = kernels::Arithmetic::kStrict;
  kernels::KvType kv_type = kernels::KvType::kF32;
};

class NotFiniteTest : public ::testing::TestWithParam<Case> {
 protected:
  NotFiniteTest() {
    const Case& of = GetParam();
    testing::TinyModel tiny;
    tiny.architecture = of.architecture;
    tiny.vocab_size = 501;
    tiny.nan_token_id = kBadToken;
    const std::string folder = ::testing::TempDir() + "not-finite";
    testing::WriteHuggingFaceFolder(tiny, folder);
    model_ = *OpenModel(folder);
    group_ = *EngineGroup::Create(
        *model_, of.ranks,
        {.engine = {.num_pages = kScheduler.num_pages,
                    .page_size = kScheduler.page_size,
                    .max_step_tokens = kScheduler.max_step_tokens,
                    .max_sequences = kScheduler.max_sequences,
                    .max_logits_rows = kScheduler.max_logits_rows,
                    .arithmetic = of.arithmetic,
                    .kv_type = of.kv_type},
         .ranks = {.threads = 2}});
    driver_.emplace(kScheduler, group_.get());
  }

  const OutputRecorder::Record& Of(uint64_t request, uint32_t choice = 0) {
    return driver_->outputs().of({request, choice});
  }

  void ExpectEndedAtOnce(uint64_t request, uint32_t choice = 0) {
    EXPECT_EQ(Of(request, choice).reason, v1::NOT_FINITE) << request;
    EXPECT_THAT(Of(request, choice).tokens, IsEmpty());
    EXPECT_THAT(Of(request, choice).embedding, IsEmpty());
  }

  std::optional<ModelFiles> model_;
  std::unique_ptr<EngineGroup> group_;
  std::optional<SchedulerDriver> driver_;
};

TEST_P(NotFiniteTest, EndsTheRequestAndNoOther) {
  std::vector<std::vector<uint32_t>> alone;
  for (const float temperature : {0.0f, 1.0f}) {
    const uint64_t request = driver_->Add(Good(temperature));
    driver_->RunUntilIdle();
    alone.push_back(Of(request).tokens);
    ASSERT_EQ(alone.back().size(), 8);
  }
  uint64_t ended = 0;
  // Over pages that were NaN before, too.
  for (const int place : {0, 5, 13}) {
    const uint64_t bad = driver_->Add(Bad(place));
    const uint64_t greedy = driver_->Add(Good());
    const uint64_t drawn = driver_->Add(Good(1));
    driver_->RunUntilIdle();
    ExpectEndedAtOnce(bad);
    EXPECT_EQ(Of(greedy).tokens, alone[0]);
    EXPECT_EQ(Of(drawn).tokens, alone[1]);
    EXPECT_EQ(driver_->scheduler().stats().not_finite, ++ended);
  }
}

TEST_P(NotFiniteTest, NobodyGetsItsKeysAndValues) {
  for (int i = 0; i < 3; ++i) {
    const uint64_t bad = driver_->Add(Bad(2));
    driver_->RunUntilIdle();
    ExpectEndedAtOnce(bad);
    EXPECT_EQ(Of(bad).cached_tokens, 0);
    EXPECT_EQ(driver_->scheduler().stats().cached_pages, 0);
  }
}

TEST_P(NotFiniteTest, EndsEveryChoice) {
  v1::AddRequest request = Bad(3);
  request.mutable_sampling()->set_n(3);
  const uint64_t bad = driver_->Add(request);
  driver_->RunUntilIdle();
  for (uint32_t choice = 0; choice < 3; ++choice) {
    ExpectEndedAtOnce(bad, choice);
  }
}

// In the first step, though no token is chosen yet.
TEST_P(NotFiniteTest, EndsARequestWhosePromptCanNotBeScored) {
  v1::AddRequest request = Bad(3);
  while (request.prompt_token_ids_size() < 30) request.add_prompt_token_ids(7);
  request.mutable_sampling()->set_prompt_logprobs_plus_one(1);
  const uint64_t bad = driver_->Add(request);
  driver_->Step();
  ExpectEndedAtOnce(bad);
  EXPECT_THAT(Of(bad).prompt_logprobs, IsEmpty());
}

TEST_P(NotFiniteTest, EndsAnEmbeddingAndNoOther) {
  for (const v1::Pooling pooling : {v1::LAST_TOKEN, v1::MEAN}) {
    const uint64_t alone = driver_->Add(ToEmbed(Good(), pooling, 8));
    driver_->RunUntilIdle();
    const uint64_t bad = driver_->Add(ToEmbed(Bad(2), pooling, 8));
    const uint64_t good = driver_->Add(ToEmbed(Good(), pooling, 8));
    driver_->RunUntilIdle();
    ExpectEndedAtOnce(bad);
    EXPECT_EQ(Of(good).reason, v1::STOP);
    EXPECT_EQ(Of(good).embedding, Of(alone).embedding);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, NotFiniteTest,
    ::testing::Values(Case{1}, Case{2}, Case{1, "qwen2moe"},
                      Case{2, "llama", kernels::Arithmetic::kFast},
                      Case{1, "qwen2moe", kernels::Arithmetic::kFast},
                      Case{1, "llama", kernels::Arithmetic::kFast,
                           kernels::KvType::kInt8}));

}  // namespace
}  // namespace lockstep
