// Two steps in flight on emulated GPUs, or on the machine's: the tokens of one
// at a time, whatever the device is late with.
#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "kernels/weights/dtype.h"
#include "proto/group.pb.h"
#include "tests/testing/cuda/cuda_group.h"
#include "tests/testing/device/test_gpu.h"
#include "tests/testing/scheduler_driver.h"
#include "tests/testing/tiny_model.h"
#include "worker/core/sequence.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/scheduler/scheduler_options.h"
#include "worker/weights/model_files.h"

namespace lockstep {
namespace {

using testing::CudaGroup;
using testing::HasDevices;
using testing::SomeTokens;

constexpr int kNumPages = 48;
constexpr int kPageSize = 4;

class CudaOverlapTest : public ::testing::Test {
 protected:
  CudaOverlapTest() {
    testing::TinyModel tiny;
    tiny.architecture = "qwen3";
    tiny.vocab_size = 501;  // padded on two ranks
    tiny.type = kernels::DType::kBF16;
    const std::string path = ::testing::TempDir() + "model";
    testing::WriteHuggingFaceFolder(tiny, path);
    auto model = OpenModel(path);
    EXPECT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }

  std::unique_ptr<CudaGroup> MakeGroup(int size) {
    auto group = CudaGroup::Create(&gpu_, model_, size,
                                   {.num_pages = kNumPages,
                                    .page_size = kPageSize,
                                    .max_step_tokens = 64,
                                    .max_sequences = 4,
                                    .max_logits_rows = 64});
    EXPECT_TRUE(group.ok()) << group.status();
    return *std::move(group);
  }

  void Dawdle(unsigned seed, int most_us) {
    if (gpu_.fake() != nullptr) gpu_.fake()->Delay(seed, most_us);
  }

  struct Run {
    std::vector<std::vector<uint32_t>> tokens;  // of each request
    std::vector<std::string> logprobs;          // of all, serialized
    int num_overlapped = 0;  // steps that read a token on the device
  };
  Run RunRequests(int size, int steps_in_flight);

  TestGpu gpu_{/*devices=*/2};
  ModelFiles model_;
};

// Of each kind that the device chooses alone, and some whose penalties the host
// counts; some end by a stop id.
v1::AddRequest RequestOf(int number) {
  v1::AddRequest request =
      MakeRequest(SomeTokens(1 + number * 5 % 19, number), 6 + number % 9);
  v1::ResolvedSampling& sampling = *request.mutable_sampling();
  sampling.set_temperature(number % 3 == 0 ? 0 : 1);
  sampling.set_seed(number);
  if (number % 3 == 1) sampling.set_top_k(50);
  if (number % 4 == 2) sampling.set_logprobs_plus_one(2);
  if (number % 4 == 3) sampling.set_prompt_logprobs_plus_one(2);
  if (number % 6 == 4) sampling.set_min_tokens(3);
  if (number % 6 == 5) sampling.set_frequency_penalty(1);
  for (uint32_t id = number % 3; id < 500; id += 23) {
    sampling.add_stop_token_ids(id);
  }
  return request;
}

CudaOverlapTest::Run CudaOverlapTest::RunRequests(int size,
                                                  int steps_in_flight) {
  Run run;
  const auto group = MakeGroup(size);
  SchedulerDriver driver({.num_pages = kNumPages,
                          .page_size = kPageSize,
                          .max_step_tokens = 8,
                          .max_sequences = 4,
                          .max_logits_rows = 8,
                          .max_context = 40,
                          .steps_in_flight = steps_in_flight,
                          .host_samples = true},
                         group.get());
  constexpr int kRequests = 12;
  constexpr uint64_t kAborted = 7;
  int added = 0;
  for (int step = 0; added < kRequests || driver.scheduler().HasWork();
       ++step) {
    if (added < kRequests && step % 3 == 0) driver.Add(RequestOf(added++));
    if (step == 22) driver.Abort(kAborted);
    const StepPlan plan = driver.Step();
    run.num_overlapped += std::any_of(
        plan.spans.begin(), plan.spans.end(),
        [](const SequenceSpan& span) { return span.token_from >= 0; });
  }
  for (uint64_t request = 1; request <= kRequests; ++request) {
    if (request == kAborted) continue;  // how far it came does not matter
    const auto& output = driver.outputs().of({.request = request});
    run.tokens.push_back(output.tokens);
    for (const auto* of : {&output.prompt_logprobs, &output.logprobs}) {
      for (const v1::PositionLogprobs& logprobs : *of) {
        run.logprobs.push_back(logprobs.SerializeAsString());
      }
    }
  }
  return run;
}

TEST_F(CudaOverlapTest, GivesTheSameTokens) {
  for (const int size : {1, 2}) {
    if (!HasDevices(gpu_, size)) continue;
    Dawdle(0, 0);
    const Run alone = RunRequests(size, /*steps_in_flight=*/1);
    EXPECT_EQ(alone.num_overlapped, 0);
    EXPECT_GT(alone.logprobs.size(), 30);
    for (const int seed : {1, 2}) {
      SCOPED_TRACE(seed);
      Dawdle(seed, /*most_us=*/50);
      const Run overlapped = RunRequests(size, /*steps_in_flight=*/2);
      EXPECT_EQ(overlapped.tokens, alone.tokens);
      EXPECT_EQ(overlapped.logprobs, alone.logprobs);
      EXPECT_GT(overlapped.num_overlapped, 3);
    }
  }
}

struct Arrival {
  v1::AddRequest request;
  int step = 0;
  int aborted_in = -1;  // the step
};

// Prompts share prefixes, pages are short, and some are preempted or aborted.
struct Schedule {
  SchedulerOptions limits;
  std::vector<Arrival> arrivals;
  int failing_call = 0;  // of the driver's; 0: none
};

Schedule DrawSchedule(uint32_t seed) {
  std::mt19937 random(seed);
  const auto up_to = [&](int n) { return static_cast<int>(random() % n); };
  Schedule schedule;
  schedule.limits = {.num_pages = 7 + up_to(8),
                     .page_size = kPageSize,
                     .max_step_tokens = 6,
                     .max_sequences = 2 + up_to(3),
                     .max_logits_rows = 6,
                     .max_context = 28,
                     .host_samples = true};
  schedule.arrivals.resize(2 + up_to(4));
  for (Arrival& arrival : schedule.arrivals) {
    arrival.request = RequestOf(up_to(60));
    v1::AddRequest& request = arrival.request;
    const auto prompt = SomeTokens(1 + up_to(13), up_to(2));
    request.mutable_prompt_token_ids()->Assign(prompt.begin(), prompt.end());
    request.mutable_sampling()->set_max_tokens(1 + up_to(8));
    arrival.step = up_to(6);
    if (up_to(5) == 0) arrival.aborted_in = arrival.step + up_to(8);
  }
  if (up_to(5) == 0) schedule.failing_call = 1 + up_to(300);
  return schedule;
}

// Until an error of the engine.
absl::Status RunSchedule(const Schedule& schedule, SchedulerDriver* driver,
                         int* num_overlapped) {
  std::vector<uint64_t> numbers(schedule.arrivals.size());
  bool to_come = true;
  for (int step = 0; to_come || driver->scheduler().HasWork(); ++step) {
    to_come = false;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const Arrival& arrival = schedule.arrivals[i];
      if (arrival.step == step) numbers[i] = driver->Add(arrival.request);
      if (arrival.aborted_in == step) driver->Abort(numbers[i]);
      to_come |= std::max(arrival.step, arrival.aborted_in) > step;
    }
    StepPlan plan;
    LOCKSTEP_RETURN_IF_ERROR(driver->TryStep(&plan));
    *num_overlapped += std::any_of(
        plan.spans.begin(), plan.spans.end(),
        [](const SequenceSpan& span) { return span.token_from >= 0; });
  }
  return absl::OkStatus();
}

std::vector<std::string> Serialized(
    const std::vector<v1::PositionLogprobs>& logprobs) {
  std::vector<std::string> serialized;
  for (const auto& of : logprobs) serialized.push_back(of.SerializeAsString());
  return serialized;
}

// What was told until an end that came early is the beginning of the rest.
template <typename T>
void ExpectSameSoFar(std::vector<T> a, std::vector<T> b, bool partly) {
  const size_t both = std::min(a.size(), b.size());
  if (partly) a.resize(both), b.resize(both);
  EXPECT_EQ(a, b);
}

void ExpectSameTold(SchedulerDriver& alone, SchedulerDriver& overlapped,
                    bool has_failed) {
  // Which are numbered as they come, in both.
  for (uint64_t i = 1; i <= overlapped.num_requests(); ++i) {
    SCOPED_TRACE(absl::StrCat("request ", i));
    const auto& a = alone.outputs().of({.request = i});
    const auto& b = overlapped.outputs().of({.request = i});
    const bool partly = a.reason == v1::ABORTED || b.reason == v1::ABORTED ||
                        (has_failed && !b.reason.has_value());
    ExpectSameSoFar(a.tokens, b.tokens, partly);
    ExpectSameSoFar(Serialized(a.logprobs), Serialized(b.logprobs), partly);
    if (!partly) {
      EXPECT_EQ(a.reason, b.reason);
    }
  }
}

uint32_t FromEnvironment(const char* name, uint32_t otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoul(value, nullptr, 10);
}

// LOCKSTEP_SCHEDULE_SEED begins at another seed than 0, LOCKSTEP_SCHEDULES runs
// another number of them.
TEST_F(CudaOverlapTest, RandomSchedulesGiveTheSameTokensOrFail) {
  const uint32_t first = FromEnvironment("LOCKSTEP_SCHEDULE_SEED", 0);
  const uint32_t count = FromEnvironment("LOCKSTEP_SCHEDULES", 25);
  int num_overlapped = 0, num_failed = 0;
  int64_t num_preempted = 0;
  std::unique_ptr<CudaGroup> group;
  for (uint32_t seed = first; seed - first < count; ++seed) {
    SCOPED_TRACE(absl::StrCat("LOCKSTEP_SCHEDULE_SEED=", seed));
    Schedule schedule = DrawSchedule(seed);
    if (group == nullptr) group = MakeGroup(/*size=*/1);
    int none = 0;
    Dawdle(0, 0);
    SchedulerDriver alone(schedule.limits, group.get());
    ASSERT_TRUE(RunSchedule(schedule, &alone, &none).ok());
    schedule.limits.steps_in_flight = 2;
    Dawdle(seed, /*most_us=*/20);
    const bool may_fail = gpu_.fake() != nullptr && schedule.failing_call > 0;
    constexpr int kIllegalAddress = 700;
    if (may_fail) {
      gpu_.fake()->Fail("", schedule.failing_call, kIllegalAddress);
    }
    SchedulerDriver overlapped(schedule.limits, group.get());
    const absl::Status status =
        RunSchedule(schedule, &overlapped, &num_overlapped);
    const bool has_failed = may_fail && !gpu_.fake()->failed().empty();
    EXPECT_EQ(status.ok(), !has_failed) << status;
    ExpectSameTold(alone, overlapped, has_failed);
    num_preempted += overlapped.scheduler().stats().preemptions;
    if (may_fail) gpu_.fake()->Fail("", 1, 0);
    num_failed += has_failed;
    if (has_failed) group.reset();  // the device is lost
    if (HasFailure()) break;
  }
  std::cout << count << " schedules from LOCKSTEP_SCHEDULE_SEED=" << first
            << ": " << num_overlapped << " steps overlapped, " << num_preempted
            << " preemptions, " << num_failed << " lost their device\n";
  EXPECT_GT(num_overlapped, count);
}

// A sequence of its own pages, drawn and scored.
std::unique_ptr<Sequence> SequenceOf(int number, int num_tokens) {
  auto request = std::make_shared<v1::AddRequest>(
      MakeRequest(SomeTokens(num_tokens, 7 * number), 9));
  request->mutable_sampling()->set_temperature(1);
  request->mutable_sampling()->set_seed(number);
  request->mutable_sampling()->set_logprobs_plus_one(3);
  auto sequence =
      std::make_unique<Sequence>(SequenceId{uint64_t(number), 0}, request);
  for (int i = 0; i < 8; ++i) {
    sequence->mutable_pages().push_back(number * 8 + i);
  }
  return sequence;
}

StepPlan PlanOf(std::vector<SequenceSpan> spans) {
  StepPlan plan;
  plan.spans = std::move(spans);
  for (SequenceSpan& span : plan.spans) {
    span.samples = true;
    plan.num_tokens += span.count;
    ++plan.num_logits_rows;
  }
  return plan;
}

void ExpectSame(const SpanResult& found, const SpanResult& expected) {
  EXPECT_EQ(found.token, expected.token);
  ASSERT_EQ(found.logprobs.size(), 1);
  EXPECT_EQ(found.logprobs[0].token().token_id(), expected.token);
  EXPECT_EQ(found.logprobs[0].SerializeAsString(),
            expected.logprobs[0].SerializeAsString());
}

// The host is done with a step, and has launched the next, before the device
// has begun: it must have copied all that it needs.
TEST_F(CudaOverlapTest, LaunchesTheNextStepBeforeTheDeviceHasBegunTheFirst) {
  if (gpu_.fake() == nullptr) GTEST_SKIP() << "a GPU is not held";
  const auto group = MakeGroup(/*size=*/1);
  auto a = SequenceOf(0, 9), b = SequenceOf(1, 5);
  StepResult first, second, result;
  ASSERT_TRUE(group
                  ->Execute(PlanOf({{.sequence = a.get(), .count = 9},
                                    {.sequence = b.get(), .count = 5}}),
                            &first)
                  .ok());
  b->AppendToken(first.spans[1].token);
  ASSERT_TRUE(
      group
          ->Execute(PlanOf({{.sequence = b.get(), .begin = 5, .count = 1}}),
                    &second)
          .ok());

  b = SequenceOf(1, 5);
  gpu_.fake()->Hold(true);
  StepPlan plan = PlanOf(
      {{.sequence = a.get(), .count = 9}, {.sequence = b.get(), .count = 5}});
  ASSERT_TRUE(group->Launch(plan).ok());
  StepPlan next =
      PlanOf({{.sequence = b.get(), .begin = 5, .count = 1, .token_from = 1}});
  ASSERT_TRUE(group->Launch(next).ok());
  // As of sequences that have ended.
  a.reset();
  b.reset();
  plan = next = StepPlan();
  gpu_.fake()->Hold(false);
  ASSERT_TRUE(group->Retire(&result).ok());
  ASSERT_EQ(result.spans.size(), 2);
  ExpectSame(result.spans[0], first.spans[0]);
  ExpectSame(result.spans[1], first.spans[1]);
  ASSERT_TRUE(group->Retire(&result).ok());
  ASSERT_EQ(result.spans.size(), 1);
  ExpectSame(result.spans[0], second.spans[0]);
}

TEST_F(CudaOverlapTest, MayEndWithStepsInFlight) {
  if (gpu_.fake() == nullptr) GTEST_SKIP() << "a GPU is not told to dawdle";
  for (const int size : {1, 2}) {
    Dawdle(1, /*most_us=*/1000);
    auto group = MakeGroup(size);
    const auto a = SequenceOf(0, 9), b = SequenceOf(1, 5);
    ASSERT_TRUE(
        group->Launch(PlanOf({{.sequence = a.get(), .count = 9}})).ok());
    ASSERT_TRUE(
        group->Launch(PlanOf({{.sequence = b.get(), .count = 5}})).ok());
    group.reset();
    EXPECT_EQ(gpu_.fake()->alive(), 0);
  }
}

// The other ranks' exchange ends with an error, in a step that was launched
// before.
TEST_F(CudaOverlapTest, ARankThatFailsEndsTheStepsInFlightOfAll) {
  if (gpu_.fake() == nullptr) GTEST_SKIP() << "a GPU is not told to fail";
  const auto group = MakeGroup(/*size=*/2);
  const auto a = SequenceOf(0, 9), b = SequenceOf(1, 5);
  ASSERT_TRUE(group->Launch(PlanOf({{.sequence = a.get(), .count = 9}})).ok());
  gpu_.fake()->Fail("cuLaunchKernel", 12, 719);
  absl::Status status =
      group->Launch(PlanOf({{.sequence = b.get(), .count = 5}}));
  StepResult result;
  for (int i = 0; i < 2 && status.ok(); ++i) status = group->Retire(&result);
  EXPECT_FALSE(status.ok());
  gpu_.fake()->Fail("", 1, 0);
}

}  // namespace
}  // namespace lockstep
