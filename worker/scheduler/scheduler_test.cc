#include "worker/scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "proto/group.pb.h"
#include "tests/testing/fake_engine.h"
#include "tests/testing/output_recorder.h"
#include "tests/testing/scheduler_driver.h"
#include "worker/core/step_plan.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

SchedulerOptions Options() {
  return {.num_pages = 64,
          .page_size = 4,
          .max_step_tokens = 16,
          .max_sequences = 4,
          .max_logits_rows = 4,
          .max_context = 64};
}

// "request:begin+count" a span, "*" where it samples.
std::vector<std::string> Spans(const StepPlan& plan) {
  std::vector<std::string> spans;
  for (const SequenceSpan& span : plan.spans) {
    spans.push_back(std::to_string(span.sequence->id().request) + ":" +
                    std::to_string(span.begin) + "+" +
                    std::to_string(span.count) + (span.samples ? "*" : ""));
  }
  return spans;
}

// Steps of a driver, drawn before the commit may end their sequences.
class PlanWatcher {
 public:
  explicit PlanWatcher(SchedulerDriver* driver) : driver_(driver) {
    driver->engine().set_before_step([this](const StepPlan& plan) {
      spans_ = Spans(plan);
      return absl::OkStatus();
    });
  }

  std::vector<std::string> Step() {
    driver_->Step();
    return spans_;
  }

 private:
  SchedulerDriver* const driver_;
  std::vector<std::string> spans_;
};

TEST(SchedulerTest, RunsARequestToItsLength) {
  SchedulerDriver driver(Options());
  EXPECT_FALSE(driver.scheduler().HasWork());
  const uint64_t request = driver.Add(MakeRequest(TokenRun(1, 10), 5));
  EXPECT_TRUE(driver.scheduler().HasWork());
  driver.RunUntilIdle();
  driver.ExpectAsAlone(request);
  EXPECT_EQ(driver.scheduler().stats().step, 5);
  EXPECT_EQ(driver.outputs().of({request, 0}).tokens.size(), 5);
  EXPECT_EQ(driver.outputs().of({request, 0}).reason, v1::LENGTH);
}

TEST(SchedulerTest, AnEmptyPlanIsAStepToo) {
  SchedulerDriver driver(Options());
  const StepPlan first = driver.Step();
  const StepPlan second = driver.Step();
  EXPECT_TRUE(first.empty());
  EXPECT_EQ(first.step, 1);
  EXPECT_EQ(second.step, 2);
  EXPECT_NE(first.digest, second.digest);
}

TEST(SchedulerTest, DecodesFirstAndChunksPromptsWithTheRest) {
  SchedulerDriver driver(Options());
  PlanWatcher watcher(&driver);
  driver.Add(MakeRequest(TokenRun(1, 6), 10));
  driver.Add(MakeRequest(TokenRun(100, 30), 10));
  driver.Add(MakeRequest(TokenRun(200, 6), 10));
  EXPECT_THAT(watcher.Step(), ElementsAre("1:0+6*", "2:0+10"));
  EXPECT_THAT(watcher.Step(), ElementsAre("1:6+1*", "2:10+15"));
  EXPECT_THAT(watcher.Step(), ElementsAre("1:7+1*", "2:25+5*", "3:0+6*"));
  EXPECT_THAT(watcher.Step(), ElementsAre("1:8+1*", "2:30+1*", "3:6+1*"));
  driver.RunUntilIdle();
  driver.ExpectAllAsAlone();
}

TEST(SchedulerTest, PrefillsByPriorityThenArrival) {
  SchedulerDriver driver(Options());
  PlanWatcher watcher(&driver);
  driver.Add(MakeRequest(TokenRun(1, 30), 4));
  EXPECT_THAT(watcher.Step(), ElementsAre("1:0+16"));
  v1::AddRequest urgent = MakeRequest(TokenRun(100, 10), 4);
  urgent.set_priority(-1);
  driver.Add(MakeRequest(TokenRun(200, 10), 4));
  driver.Add(urgent);
  EXPECT_THAT(watcher.Step(), ElementsAre("3:0+10*", "1:16+6"));
  EXPECT_THAT(watcher.Step(), ElementsAre("3:10+1*", "1:22+8*", "2:0+7"));
  driver.RunUntilIdle();
  driver.ExpectAllAsAlone();
}

TEST(SchedulerTest, RunsNoMoreThanMaxSequences) {
  SchedulerDriver driver(Options());
  for (int i = 0; i < 9; ++i) driver.Add(MakeRequest(TokenRun(10 * i, 2), 3));
  driver.Step();
  EXPECT_EQ(driver.scheduler().stats().running_sequences, 4);
  EXPECT_EQ(driver.scheduler().stats().waiting_sequences, 5);
  EXPECT_EQ(driver.scheduler().stats().waiting_tokens, 10);
  driver.RunUntilIdle();
  driver.ExpectAllAsAlone();
}

// A long prompt at the head waits for pages; nobody overtakes it, or it might
// wait for ever.
TEST(SchedulerTest, TheHeadOfTheQueueHoldsBackTheRest) {
  SchedulerOptions options = Options();
  options.num_pages = 16;
  SchedulerDriver driver(options);
  PlanWatcher watcher(&driver);
  driver.Add(MakeRequest(TokenRun(1, 12), 20));
  driver.Step();
  driver.Add(MakeRequest(TokenRun(100, 40), 4));
  driver.Add(MakeRequest(TokenRun(200, 2), 2));
  EXPECT_THAT(watcher.Step(), ElementsAre("1:12+1*"));
  driver.RunUntilIdle();
  driver.ExpectAllAsAlone();
  EXPECT_THAT(
      driver.outputs().first_scheduled(),
      ElementsAre(SequenceId{1, 0}, SequenceId{2, 0}, SequenceId{3, 0}));
}

TEST(SchedulerTest, AStopIdEndsTheChoiceAndIsNoToken) {
  const v1::AddRequest plain = MakeRequest(TokenRun(1, 5), 10);
  const FakeOutput alone =
      ContinueAlone(plain, 0, 64, SchedulerDriver::kVocabularySize);
  v1::AddRequest stopping = plain;
  stopping.mutable_sampling()->add_stop_token_ids(alone.tokens[3]);
  SchedulerDriver driver(Options());
  driver.Add(stopping);
  driver.RunUntilIdle();
  const OutputRecorder::Record& record = driver.outputs().of({1, 0});
  EXPECT_EQ(record.reason, v1::STOP);
  EXPECT_EQ(record.stop_token_id, alone.tokens[3]);
  EXPECT_THAT(record.tokens,
              ElementsAre(alone.tokens[0], alone.tokens[1], alone.tokens[2]));
}

TEST(SchedulerTest, EndsWhereTheContextIsFull) {
  SchedulerDriver driver(Options());
  driver.Add(MakeRequest(TokenRun(1, 60), 100));
  driver.Add(MakeRequest(TokenRun(100, 63), 100));
  driver.RunUntilIdle();
  EXPECT_EQ(driver.outputs().of({1, 0}).tokens.size(), 4);
  EXPECT_EQ(driver.outputs().of({2, 0}).tokens.size(), 1);
  EXPECT_EQ(driver.outputs().of({2, 0}).reason, v1::LENGTH);
  driver.ExpectAllAsAlone();
}

TEST(SchedulerTest, ResumedTokensCountAsOutput) {
  const v1::AddRequest whole = MakeRequest(TokenRun(1, 5), 8);
  const FakeOutput alone =
      ContinueAlone(whole, 0, 64, SchedulerDriver::kVocabularySize);
  v1::AddRequest resumed = whole;
  resumed.mutable_resume_token_ids()->Assign(alone.tokens.begin(),
                                             alone.tokens.begin() + 3);
  SchedulerDriver driver(Options());
  driver.Add(resumed);
  driver.RunUntilIdle();
  EXPECT_THAT(driver.outputs().of({1, 0}).tokens,
              ::testing::ElementsAreArray(alone.tokens.begin() + 3,
                                          alone.tokens.end()));
}

// Choice 1 had ended; the others go on where they were.
TEST(SchedulerTest, EachChoiceResumesItsOwnTokens) {
  v1::AddRequest whole = MakeRequest(TokenRun(1, 5), 8);
  whole.mutable_sampling()->set_n(3);
  v1::AddRequest resumed = whole;
  for (const int done : {3, 0, 6}) resumed.add_resume_token_counts(done);
  resumed.add_ended_choices(1);
  std::vector<FakeOutput> alone;
  for (const uint32_t choice : {0, 1, 2}) {
    alone.push_back(
        ContinueAlone(whole, choice, 64, SchedulerDriver::kVocabularySize));
    const auto& tokens = alone.back().tokens;
    resumed.mutable_resume_token_ids()->Add(
        tokens.begin(), tokens.begin() + resumed.resume_token_counts(choice));
  }
  SchedulerDriver driver(Options());
  driver.Add(resumed);
  driver.RunUntilIdle();
  EXPECT_THAT(driver.outputs().of({1, 1}).tokens, IsEmpty());
  for (const uint32_t choice : {0, 2}) {
    EXPECT_THAT(
        driver.outputs().of({1, choice}).tokens,
        ::testing::ElementsAreArray(
            alone[choice].tokens.begin() + resumed.resume_token_counts(choice),
            alone[choice].tokens.end()));
  }
}

// Another group's request, taken over by one that has computed it before.
TEST(SchedulerTest, ResumedTokensAreNoCachedPromptTokens) {
  const v1::AddRequest whole = MakeRequest(TokenRun(1, 5), 20);
  SchedulerDriver driver(Options());
  driver.Add(whole);
  driver.RunUntilIdle();
  const std::vector<uint32_t> tokens = driver.outputs().of({1, 0}).tokens;
  v1::AddRequest resumed = whole;
  resumed.mutable_resume_token_ids()->Assign(tokens.begin(),
                                             tokens.begin() + 15);
  driver.Add(resumed);
  driver.RunUntilIdle();
  EXPECT_EQ(driver.outputs().of({2, 0}).cached_tokens, 5);
  driver.ExpectAllAsAlone();
}

TEST(SchedulerTest, NothingIsLeftToComputeOfAFullyResumedRequest) {
  v1::AddRequest request = MakeRequest(TokenRun(1, 5), 2);
  request.add_resume_token_ids(8);
  request.add_resume_token_ids(9);
  v1::AddRequest full = MakeRequest(TokenRun(1, 63), 50);
  full.add_resume_token_ids(8);
  SchedulerDriver driver(Options());
  for (const auto& add : {request, full}) {
    const OutputRecorder::Record& record =
        driver.outputs().of({driver.Add(add), 0});
    EXPECT_EQ(record.reason, v1::LENGTH);
    EXPECT_THAT(record.tokens, IsEmpty());
  }
  EXPECT_FALSE(driver.scheduler().HasWork());
}

TEST(SchedulerTest, ReportsLogprobsOfTokensAndPrompt) {
  v1::AddRequest request = MakeRequest(TokenRun(1, 11), 3);
  request.mutable_sampling()->set_logprobs_plus_one(3);
  request.mutable_sampling()->set_prompt_logprobs_plus_one(2);
  SchedulerDriver driver(Options());
  driver.Add(MakeRequest(TokenRun(1, 11), 1));  // leaves the prompt cached
  driver.RunUntilIdle();
  const uint64_t number = driver.Add(request);
  driver.RunUntilIdle();
  driver.ExpectAsAlone(number);
  const OutputRecorder::Record& record = driver.outputs().of({number, 0});
  EXPECT_EQ(record.cached_tokens, 0);
  ASSERT_EQ(record.prompt_logprobs.size(), 10);
  for (uint32_t i = 0; i < 10; ++i) {
    EXPECT_EQ(record.prompt_logprobs[i].token().token_id(), i + 2);
    EXPECT_EQ(record.prompt_logprobs[i].top_size(), 1);
  }
  ASSERT_EQ(record.logprobs.size(), 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(record.logprobs[i].token().token_id(), record.tokens[i]);
    EXPECT_EQ(record.logprobs[i].top_size(), 2);
  }
}

TEST(SchedulerDeathTest, MessagesComeBetweenSteps) {
  OutputRecorder outputs;
  Scheduler scheduler(Options(), &outputs);
  scheduler.Plan();
  v1::RankMessage message;
  message.mutable_abort()->set_request(1);
  EXPECT_DEATH((void)scheduler.Apply(message), "between Plan and Commit");
  EXPECT_DEATH(scheduler.Plan(), "without Commit");
}

TEST(SchedulerTest, RefusesWhatNoCorrectLeaderSends) {
  OutputRecorder outputs;
  Scheduler scheduler(Options(), &outputs);
  const auto refusal = [&](const v1::RankMessage& message) {
    const absl::Status status = scheduler.Apply(message);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_FALSE(scheduler.HasWork());
    return std::string(status.message());
  };
  EXPECT_EQ(refusal({}), "a message of kind 0 is none for the scheduler.");
  v1::RankMessage message;
  message.mutable_stop();
  EXPECT_EQ(refusal(message), "a message of kind 3 is none for the scheduler.");

  const auto refused_add = [&](std::function<void(v1::AddRequest&)> change) {
    v1::RankMessage add;
    *add.mutable_add() = MakeRequest({1, 2, 3}, 1);
    add.mutable_add()->set_request(1);
    change(*add.mutable_add());
    return refusal(add);
  };
  EXPECT_EQ(refused_add([](auto& add) { add.set_request(0); }),
            "request 0 comes after request 0; numbers must count up.");
  EXPECT_EQ(refused_add([](auto& add) { add.clear_prompt_token_ids(); }),
            "request 1 has num_prompt_tokens 0, it must be from 1 to 63.");
  EXPECT_EQ(refused_add([](auto& add) {
              add.mutable_prompt_token_ids()->Resize(64, 7);
            }),
            "request 1 has num_prompt_tokens 64, it must be from 1 to 63.");
  EXPECT_EQ(refused_add([](auto& add) { add.mutable_sampling()->set_n(0); }),
            "request 1 has n 0, it must be from 1 to 128.");
  EXPECT_EQ(refused_add([](auto& add) { add.mutable_sampling()->set_n(129); }),
            "request 1 has n 129, it must be from 1 to 128.");
  EXPECT_EQ(refused_add([](auto& add) {
              add.mutable_resume_token_ids()->Resize(62, 7);
            }),
            "request 1 has num_resume_tokens 62, it must be from 0 to 61.");
  EXPECT_EQ(refused_add([](auto& add) {
              add.add_resume_token_ids(1);
              add.mutable_sampling()->set_n(2);
            }),
            "request 1 has num_resume_token_counts 0, it must be from 2 to 2.");
  EXPECT_EQ(refused_add([](auto& add) {
              add.mutable_resume_token_ids()->Resize(3, 7);
              add.add_resume_token_counts(2);
            }),
            "request 1 has num_resume_tokens of no choice 1, it must be from 0 "
            "to 0.");
  EXPECT_EQ(refused_add([](auto& add) { add.add_resume_token_counts(62); }),
            "request 1 has num_resume_tokens 62, it must be from 0 to 61.");
  EXPECT_EQ(refused_add([](auto& add) { add.add_ended_choices(0); }),
            "request 1 has num_ended_choices 1, it must be from 0 to 0.");
  EXPECT_EQ(refused_add([](auto& add) { add.add_ended_choices(1); }),
            "request 1 has ended choice 1, it must be from 0 to 0.");
  EXPECT_EQ(refused_add([](auto& add) {
              add.mutable_sampling()->add_bad_word_token_ids(1);
              add.mutable_sampling()->add_bad_word_sizes(2);
            }),
            "request 1 has num_bad_word_token_ids 1, it must be from 2 to 2.");
  EXPECT_EQ(refused_add([](auto& add) {
              add.mutable_sampling()->add_bad_word_sizes(0);
            }),
            "request 1 has bad_word_sizes 0, it must be from 1 to 4294967295.");
  EXPECT_EQ(
      refused_add([](auto& add) { add.mutable_sampling()->set_max_tokens(0); }),
      "request 1 has max_tokens 0, it must be from 1 to 4294967295.");
}

// A number that comes again is refused, also when its request has ended.
TEST(SchedulerTest, NumbersCountUp) {
  SchedulerDriver driver(Options());
  driver.Add(MakeRequest({1}, 1));
  driver.RunUntilIdle();
  v1::RankMessage message;
  *message.mutable_add() = driver.request(1);
  EXPECT_EQ(driver.scheduler().Apply(message).message(),
            "request 1 comes after request 1; numbers must count up.");
}

}  // namespace
}  // namespace lockstep
