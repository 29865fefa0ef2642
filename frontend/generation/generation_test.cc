#include "frontend/generation/generation.h"

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "frontend/access/access_control.h"
#include "frontend/generation/pipeline.h"
#include "frontend/routing/group_set.h"
#include "frontend/routing/policy/round_robin.h"
#include "tests/testing/fake_tokenizer.h"
#include "tests/testing/fake_worker.h"
#include "tests/testing/recording_sink.h"

namespace lockstep {
namespace {

using ::lockstep::testing::AcceptedMessage;
using ::lockstep::testing::DeltaMessage;
using ::lockstep::testing::FakeAnswer;
using ::lockstep::testing::FakeWorker;
using ::lockstep::testing::FinishMessage;
using ::lockstep::testing::Say;
using ::lockstep::testing::SummaryMessage;

constexpr size_t kBytes = 10;  // of a request

class GenerationTest : public ::testing::Test {
 protected:
  GenerationTest() {
    worker_.model_info().set_fingerprint("bits");
    other_worker_.model_info().set_fingerprint("bits");
    worker_.Start();
    groups_.Start([] {});
    Serve({&worker_});
    pipeline_ = std::make_unique<Pipeline>(
        PipelineOptions{/*max_inflight_requests=*/2, /*encode_threads=*/1},
        &tokenizer_, &groups_);
    spec_.request_id = "r1";
    spec_.worker_request_id = "r1-w";
    spec_.model = {"fake", 100, 259};
    spec_.prompt = {TextPrompt{"hi"}, true, "text"};
  }

  void Serve(const std::vector<FakeWorker*>& workers) {
    std::vector<std::string> addresses;
    for (FakeWorker* worker : workers) addresses.push_back(worker->address());
    groups_.SetAddresses(addresses);
    while (groups_.num_ready() < static_cast<int>(workers.size())) {
      std::this_thread::yield();
    }
  }

  Parser<GenerateSpec> Spec() {
    return [this] { return spec_; };
  }

  // One request, from start to its terminal event.
  void Run() {
    {
      Generation generation(pipeline_.get(), kBytes, Spec(), &sink_);
      generation.Start();
      sink_.ended.WaitForNotification();
      EXPECT_EQ(pipeline_->inflight().number(), 1);
    }
    EXPECT_EQ(pipeline_->inflight().number(), 0);
  }

  FakeWorker worker_;
  FakeWorker other_worker_;  // not started
  FakeTokenizer tokenizer_;
  GroupSet groups_{{}, std::make_unique<RoundRobin>()};
  std::unique_ptr<Pipeline> pipeline_;
  GenerateSpec spec_;
  RecordingSink sink_;
};

TEST_F(GenerationTest, TextGoesInAndTextComesOut) {
  spec_.sampling.set_seed(5);
  spec_.priority = 7;
  worker_.set_script([](const auto& request) { return Say(request, "né 😀"); });
  Run();
  EXPECT_TRUE(sink_.error.ok()) << sink_.error;
  EXPECT_EQ(sink_.texts[0], "né 😀");
  EXPECT_EQ(sink_.accepted.prompt_tokens, 3);
  EXPECT_EQ(sink_.accepted.seed, 5);
  ASSERT_TRUE(sink_.summary.has_value());
  EXPECT_EQ(sink_.summary->usage.completion_tokens(), 8);
  const auto request = worker_.requests()[0];
  EXPECT_EQ(request.request_id(), "r1-w");
  EXPECT_EQ(request.prompt_token_ids(0), FakeTokenizer::kBos);
  EXPECT_EQ(request.priority(), 7);
}

TEST_F(GenerationTest, OfALongPromptTheLastTokensCount) {
  const std::string text = std::string(200, 'a') + "né";
  spec_.prompt = {TextPrompt{text}, true, "text"};
  spec_.return_prompt = true;
  spec_.truncation = 4;
  worker_.set_script([](const auto& request) { return Say(request, "yes"); });
  Run();
  EXPECT_TRUE(sink_.error.ok()) << sink_.error;
  const std::vector<uint32_t> ids = {FakeTokenizer::kBos, 'n', 0xc3, 0xa9};
  EXPECT_EQ(sink_.accepted.prompt_token_ids, ids);
  EXPECT_EQ(sink_.accepted.prompt_text, "né");
  EXPECT_EQ(worker_.requests()[0].prompt_token_ids_size(), 4);
}

TEST_F(GenerationTest, BadWordsGoToTheWorkerAsIds) {
  spec_.bad_words = {"no"};
  worker_.set_script([](const auto& request) { return Say(request, "yes"); });
  Run();
  EXPECT_TRUE(sink_.error.ok()) << sink_.error;
  const v1::SamplingParams sampling = worker_.requests()[0].sampling();
  ASSERT_EQ(sampling.bad_words_size(), 2);
  EXPECT_EQ(sampling.bad_words(0).ids_size(), 2);
  EXPECT_EQ(sampling.bad_words(1).ids(0), ' ');
}

TEST_F(GenerationTest, AStopStringAbortsTheChoiceAtTheWorker) {
  spec_.stop = {"."};
  worker_.set_script([](const auto& request) {
    FakeAnswer answer;
    answer.messages = {AcceptedMessage(request), DeltaMessage(0, "one. two")};
    answer.then = FakeAnswer::Then::kAwaitAbort;
    answer.after_abort = {FinishMessage(0, v1::ABORTED), SummaryMessage()};
    return answer;
  });
  Run();
  EXPECT_EQ(sink_.texts[0], "one");
  ASSERT_EQ(sink_.finishes.size(), 1);
  EXPECT_EQ(sink_.finishes[0].reason, v1::STOP);
  EXPECT_EQ(sink_.finishes[0].stop_string, ".");
  EXPECT_EQ(sink_.summary->usage.completion_tokens(), 4);
  EXPECT_EQ(sink_.summary->usage.cached_tokens(), 1);
  ASSERT_EQ(worker_.aborts().size(), 1);
  EXPECT_EQ(worker_.aborts()[0].request_ids(0), "r1-w");
  EXPECT_EQ(worker_.aborts()[0].choices_size(), 1);
}

TEST_F(GenerationTest, AGrantRaisesThePriorityAndIsChargedForAllTokens) {
  absl::Time now = absl::UnixEpoch();
  AccessControl access([&now] { return now; });
  const auto may_enter = [&access] { return access.Enter("Bearer key").ok(); };
  access.SetKeys({{"alice",
                   SecretDigest::Of("key"),
                   {.concurrent_requests = 1,
                    .tokens_per_minute = 60,
                    .priority_floor = 10}}});
  worker_.set_script(
      [](const auto& request) { return Say(request, std::string(70, 'a')); });
  spec_.priority = -5;
  Generation generation(pipeline_.get(), kBytes, Spec(), &sink_,
                        {.grant = *access.Enter("Bearer key")});
  EXPECT_FALSE(may_enter());  // one runs already
  generation.Start();
  sink_.ended.WaitForNotification();
  EXPECT_EQ(worker_.requests()[0].priority(), 10);
  // A prompt of 3 and an answer of 70, at one a second.
  now += absl::Seconds(13);
  EXPECT_FALSE(may_enter());
  now += absl::Seconds(2);
  EXPECT_TRUE(may_enter());
}

TEST_F(GenerationTest, CancelReachesTheWorkerAtOnce) {
  worker_.set_script([](const auto& request) {
    FakeAnswer answer;
    answer.messages = {AcceptedMessage(request)};
    answer.then = FakeAnswer::Then::kAwaitCancel;
    return answer;
  });
  Generation generation(pipeline_.get(), kBytes, Spec(), &sink_);
  generation.Start();
  worker_.WaitForRequests(1);
  generation.Cancel(absl::CancelledError("gone"));
  sink_.ended.WaitForNotification();
  EXPECT_EQ(sink_.error, absl::CancelledError("gone"));
  worker_.WaitForCancels(1);
}

TEST_F(GenerationTest, CancelBeforeItIsSentNeverReachesTheWorker) {
  absl::Notification release;
  ASSERT_TRUE(pipeline_->encode_pool()
                  .Run(kBytes, [&] { release.WaitForNotification(); })
                  .ok());
  Generation generation(pipeline_.get(), kBytes, Spec(), &sink_);
  generation.Start();
  generation.Cancel(absl::CancelledError("gone"));
  release.Notify();
  sink_.ended.WaitForNotification();
  EXPECT_EQ(sink_.error, absl::CancelledError("gone"));
  EXPECT_TRUE(worker_.requests().empty());
}

TEST_F(GenerationTest, ASlowReaderHoldsTheWorkersStream) {
  std::function<void()> resume;
  absl::Notification held;
  sink_.hold_back = [&](std::function<void()> go_on) {
    resume = std::move(go_on);
    held.Notify();
  };
  worker_.set_script([](const auto& request) { return Say(request, "text"); });
  Generation generation(pipeline_.get(), kBytes, Spec(), &sink_);
  generation.Start();
  held.WaitForNotification();
  EXPECT_EQ(sink_.accepted.request_id, "r1");
  EXPECT_TRUE(sink_.deltas.empty());
  resume();
  sink_.ended.WaitForNotification();
  EXPECT_EQ(sink_.texts[0], "text");
}

TEST_F(GenerationTest, AWorkerThatGoesIsUnavailableAndNamed) {
  absl::Notification accepted;
  sink_.hold_back = [&](std::function<void()> go_on) {
    go_on();
    accepted.Notify();
  };
  worker_.set_script([](const auto& request) {
    FakeAnswer answer;
    answer.messages = {AcceptedMessage(request)};
    answer.then = FakeAnswer::Then::kAwaitCancel;
    return answer;
  });
  Generation generation(pipeline_.get(), kBytes, Spec(), &sink_);
  generation.Start();
  accepted.WaitForNotification();
  worker_.Stop();
  sink_.ended.WaitForNotification();
  EXPECT_EQ(sink_.error.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(sink_.error.message().find(worker_.address()), std::string::npos)
      << sink_.error;
}

// In the midst of a character, and of what could become a stop string.
TEST_F(GenerationTest, ALostGroupIsNotSeenInTheText) {
  spec_.stop = {" - end"};
  other_worker_.Start();
  Serve({&worker_, &other_worker_});
  const std::string text = "né - no - end";
  for (size_t lost_after = 1; lost_after < text.size(); ++lost_after) {
    const auto half = [&](const auto& request) {
      const size_t begin = request.resume_token_ids_size();
      const size_t end = begin == 0 ? lost_after : text.size();
      FakeAnswer answer;
      answer.messages = {AcceptedMessage(request),
                         DeltaMessage(0, text.substr(begin, end - begin))};
      if (begin == 0) {
        answer.status = absl::UnavailableError("a rank is gone.");
      } else {
        answer.then = FakeAnswer::Then::kAwaitAbort;
        answer.after_abort = {FinishMessage(0, v1::ABORTED), SummaryMessage()};
      }
      return answer;
    };
    worker_.set_script(half);
    other_worker_.set_script(half);
    RecordingSink sink;
    Generation generation(pipeline_.get(), kBytes, Spec(), &sink);
    generation.Start();
    sink.ended.WaitForNotification();
    EXPECT_TRUE(sink.error.ok()) << sink.error;
    EXPECT_EQ(sink.texts[0], "né - no");
    ASSERT_EQ(sink.finishes.size(), 1);
    EXPECT_EQ(sink.finishes[0].stop_string, " - end");
    EXPECT_EQ(sink.summary->usage.completion_tokens(), text.size());
  }
}

TEST_F(GenerationTest, ErrorsOfEachStageReachTheClient) {
  const auto say = [](const auto& request) { return Say(request, "text"); };
  const auto refuse = [](const auto&) {
    FakeAnswer answer;
    answer.status = absl::InvalidArgumentError(
        "sampling.top_p is 2; it must be at most 1.");
    return answer;
  };
  const auto stop_short = [](const auto& request) {
    FakeAnswer answer;
    answer.messages = {AcceptedMessage(request)};
    return answer;
  };
  const auto babble = [](const auto&) {
    FakeAnswer answer;
    answer.messages = {DeltaMessage(3, "x")};
    answer.then = FakeAnswer::Then::kAwaitCancel;
    return answer;
  };
  const struct {
    PromptSpec prompt;
    FakeWorker::Script script;
    absl::Status error;
  } kCases[] = {
      {{ChatPrompt{{{"raise", "no"}}, true}, false, "chat.messages"},
       say,
       absl::InvalidArgumentError("chat.messages cannot be rendered: no")},
      {{TextPrompt{std::string(99, 'a')}, true, "text"},
       say,
       absl::InvalidArgumentError(
           "text is 100 tokens long; at most 99 fit, as the context of fake is "
           "100 tokens and the answer needs one of them.")},
      {{TextPrompt{"hi"}, true, "text"},
       refuse,
       absl::InvalidArgumentError("sampling.top_p is 2; it must be at most "
                                  "1.")},
      {{TextPrompt{"hi"}, true, "text"},
       stop_short,
       absl::UnavailableError("the worker at " + worker_.address() +
                              " ended the answer before it was complete.")},
      {{TextPrompt{"hi"}, true, "text"},
       babble,
       absl::InternalError("the worker answered choice 3 of 1.")},
  };
  for (const auto& c : kCases) {
    spec_.prompt = c.prompt;
    worker_.set_script(c.script);
    RecordingSink sink;
    Generation generation(pipeline_.get(), kBytes, Spec(), &sink);
    generation.Start();
    sink.ended.WaitForNotification();
    EXPECT_EQ(sink.error.code(), c.error.code());
    EXPECT_EQ(sink.error.message(), c.error.message());
  }
}

TEST_F(GenerationTest, ADeadlineIsPassedOn) {
  worker_.set_script([](const auto& request) {
    FakeAnswer answer;
    answer.messages = {AcceptedMessage(request)};
    answer.then = FakeAnswer::Then::kAwaitCancel;
    return answer;
  });
  spec_.deadline =
      std::chrono::system_clock::now() + std::chrono::milliseconds(200);
  Run();
  EXPECT_EQ(sink_.error,
            absl::DeadlineExceededError("the deadline of the call passed "
                                        "before the answer was complete."));
}

TEST_F(GenerationTest, EndsWithTheFirstReasonThatWasGiven) {
  worker_.set_script([](const auto& request) {
    FakeAnswer answer;
    answer.messages = {AcceptedMessage(request)};
    answer.then = FakeAnswer::Then::kAwaitCancel;
    return answer;
  });
  Generation generation(pipeline_.get(), kBytes, Spec(), &sink_);
  generation.Start();
  worker_.WaitForRequests(1);
  pipeline_->inflight().EndAll(absl::UnavailableError("shutting down"));
  generation.Cancel(absl::CancelledError("gone"));
  sink_.ended.WaitForNotification();
  EXPECT_EQ(sink_.error, absl::UnavailableError("shutting down"));
}

TEST_F(GenerationTest, WhatDoesNotParseEndsIt) {
  const auto error = absl::InvalidArgumentError("there is no prompt.");
  Generation generation(
      pipeline_.get(), kBytes,
      [&]() -> absl::StatusOr<GenerateSpec> { return error; }, &sink_);
  generation.Start();
  sink_.ended.WaitForNotification();
  EXPECT_EQ(sink_.error, error);
  EXPECT_TRUE(worker_.requests().empty());
}

TEST_F(GenerationTest, RefusesMoreThanItMayHold) {
  auto first = pipeline_->inflight().Admit(kBytes);
  auto second = pipeline_->inflight().Admit(kBytes);
  Generation generation(pipeline_.get(), kBytes, Spec(), &sink_);
  generation.Start();
  EXPECT_TRUE(sink_.ended.HasBeenNotified());
  EXPECT_EQ(sink_.error.code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace lockstep
