#include "worker/service/admission.h"

#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "common/error_reason.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::Pair;

class AdmissionTest : public ::testing::Test {
 protected:
  std::vector<v1::RankMessage> Drained() {
    std::vector<std::string> bytes;
    EXPECT_TRUE(inbox_.Drain(/*idle=*/false, 10'000, &bytes).ok());
    std::vector<v1::RankMessage> messages(bytes.size());
    for (size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_TRUE(messages[i].ParseFromString(bytes[i]));
    }
    return messages;
  }

  static Admission::Clock::time_point In(milliseconds time) {
    return Admission::Clock::now() + time;
  }

  static void WaitForEnd(OutputStream& stream) {
    absl::Notification ended;
    stream.set_reader([&] {
      if (!stream.status().ok() && !ended.HasBeenNotified()) ended.Notify();
    });
    stream.Wake();
    ended.WaitForNotification();
    stream.set_reader(nullptr);
  }

  RequestInbox inbox_{{.max_queued_requests = 1000, .max_queued_tokens = 1000}};
  OutputRouter router_{&inbox_};
  Admission admission_{&inbox_, &router_, Admission::Options()};
};

TEST_F(AdmissionTest, AnAnswerThatIsCompleteWaitsForItsReaderForATimeOnly) {
  Admission admission(
      &inbox_, &router_,
      {.stream = {}, .read_timeout = std::chrono::milliseconds(20)});
  admission.Open();
  const auto stream = *admission.Submit("a", {});
  const SequenceId id{.request = stream->number()};
  router_.OnFirstScheduled(id, 0);
  router_.OnToken(id, 7, {});
  router_.OnFinish(id, v1::LENGTH, std::nullopt);
  router_.EndStep();
  WaitForEnd(*stream);
  EXPECT_EQ(ErrorReasonOf(stream->status()), "SLOW_READER");
  EXPECT_TRUE(stream->is_abandoned());
  admission.Leave(*stream);
  EXPECT_EQ(admission.counts().slow_reader(), 1);
}

TEST_F(AdmissionTest, IsClosedUntilOpenedAndOnceItWasClosed) {
  EXPECT_EQ(admission_.state(), v1::STARTING);
  EXPECT_EQ(ErrorReasonOf(admission_.Submit("a", {}).status()),
            "WORKER_STARTING");
  EXPECT_TRUE(admission_.SubmitAnyway("warm-up", {}).ok());
  admission_.Open();
  EXPECT_EQ(admission_.state(), v1::SERVING);
  EXPECT_TRUE(admission_.Submit("a", {}).ok());
  admission_.Close(v1::STOPPING, absl::UnavailableError("stopping."));
  EXPECT_EQ(admission_.Submit("b", {}).status(),
            absl::UnavailableError("stopping."));
  admission_.Open();
  EXPECT_EQ(admission_.state(), v1::STOPPING);
  admission_.Close(v1::FAILED, absl::UnavailableError("failed."));
  EXPECT_EQ(admission_.Submit("b", {}).status(),
            absl::UnavailableError("failed."));
  EXPECT_EQ(admission_.state(), v1::FAILED);
}

TEST_F(AdmissionTest, ADrainBeforeTheWarmUpHasEndedHoldsAfterIt) {
  admission_.Drain();
  EXPECT_EQ(admission_.state(), v1::DRAINING);
  admission_.Open();
  EXPECT_EQ(admission_.state(), v1::DRAINING);
  EXPECT_TRUE(admission_.Undrain().ok());
  EXPECT_EQ(admission_.state(), v1::SERVING);
}

TEST_F(AdmissionTest, TellsEachStateOnceAndNeverThatItServesWhenItDoesNot) {
  // What was told, and what was so.
  std::vector<std::pair<v1::ServingState, v1::ServingState>> states;
  admission_.OnState([&](v1::ServingState state) {
    states.emplace_back(state, admission_.state());
  });
  admission_.Drain();
  EXPECT_TRUE(admission_.Undrain().ok());
  admission_.Open();
  admission_.Open();
  admission_.Drain();
  admission_.Drain();
  EXPECT_TRUE(admission_.Undrain().ok());
  admission_.Close(v1::STOPPING, absl::UnavailableError("stopping."));
  admission_.Close(v1::FAILED, absl::UnavailableError("failed."));
  EXPECT_THAT(states, ElementsAre(Pair(v1::DRAINING, v1::DRAINING),
                                  Pair(v1::STARTING, v1::STARTING),
                                  Pair(v1::SERVING, v1::SERVING),
                                  Pair(v1::DRAINING, v1::SERVING),
                                  Pair(v1::SERVING, v1::SERVING),
                                  Pair(v1::STOPPING, v1::SERVING),
                                  Pair(v1::FAILED, v1::FAILED)));
}

TEST_F(AdmissionTest, AtItsDeadlineAQueuedRequestIsAbortedAndEnds) {
  admission_.Open();
  const auto stream = *admission_.Submit("a", {}, In(milliseconds(20)));
  WaitForEnd(*stream);
  EXPECT_EQ(ErrorReasonOf(stream->status()), "DEADLINE_IN_QUEUE");
  const auto messages = Drained();
  ASSERT_EQ(messages.size(), 2);
  EXPECT_EQ(messages[1].abort().cause(), v1::DEADLINE);
  admission_.Leave(*stream);
  EXPECT_EQ(admission_.counts().deadline(), 1);
}

TEST_F(AdmissionTest, AtItsDeadlineARunningRequestIsAbortedAndEnds) {
  admission_.Open();
  const auto stream = *admission_.Submit("a", {}, In(milliseconds(20)));
  stream->OnFirstScheduled(0);
  WaitForEnd(*stream);
  EXPECT_EQ(ErrorReasonOf(stream->status()), "DEADLINE_EXCEEDED");
  EXPECT_EQ(Drained().size(), 2);
}

TEST_F(AdmissionTest, ADeadlineThatHasPassedIsRefused) {
  admission_.Open();
  EXPECT_EQ(
      ErrorReasonOf(admission_.Submit("a", {}, In(milliseconds(0))).status()),
      "DEADLINE_IN_QUEUE");
  EXPECT_TRUE(Drained().empty());
  EXPECT_EQ(admission_.counts().refused(), 1);
  EXPECT_EQ(admission_.counts().accepted(), 0);
}

TEST_F(AdmissionTest, ADeadlineIsNothingToACallThatHasLeft) {
  admission_.Open();
  const auto stream = *admission_.Submit("a", {}, In(milliseconds(20)));
  admission_.Leave(*stream);
  absl::Notification later;
  admission_.timers().At(In(milliseconds(30)), [&] { later.Notify(); });
  later.WaitForNotification();
  EXPECT_TRUE(stream->status().ok());
  EXPECT_EQ(Drained().size(), 1);
}

TEST_F(AdmissionTest, EveryAbortIsIdempotentAndTheFirstCauseCounts) {
  admission_.Open();
  const auto stream = *admission_.Submit("a", {});
  for (int i = 0; i < 3; ++i) {
    admission_.Abort(*stream, {}, v1::CLIENT_CANCELLED);
    admission_.Expire(*stream);
    admission_.Abort(*stream, {}, v1::ABORT_CALL);
  }
  EXPECT_EQ(Drained().size(), 2);
  admission_.Leave(*stream);
  admission_.Leave(*stream);
  EXPECT_EQ(admission_.counts().client_cancelled(), 1);
  EXPECT_EQ(admission_.counts().deadline(), 0);
  // It has ended.
  admission_.Abort(*stream, {}, v1::ABORT_CALL);
  EXPECT_EQ(admission_.counts().abort_call(), 0);
}

TEST_F(AdmissionTest, WhatEndsTheRequestCountsBeforeWhatEndedSomeChoices) {
  admission_.Open();
  v1::AddRequest two;
  two.mutable_sampling()->set_n(2);
  const auto stream = *admission_.Submit("a", two);
  admission_.Abort(*stream, {1}, v1::ABORT_CALL);
  admission_.Expire(*stream);
  admission_.Leave(*stream);
  EXPECT_EQ(admission_.counts().deadline(), 1);
  EXPECT_EQ(admission_.counts().abort_call(), 0);
}

TEST_F(AdmissionTest, NumbersCountUpInTheOrderOfTheInbox) {
  admission_.Open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE(admission_.Submit("", {}).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto messages = Drained();
  ASSERT_EQ(messages.size(), 400);
  for (size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(messages[i].add().request(), i + 1);
  }
}

TEST_F(AdmissionTest, ARefusedRequestLeavesNothingBehind) {
  admission_.Open();
  v1::AddRequest large;
  for (int i = 0; i < 1001; ++i) large.add_prompt_token_ids(1);
  EXPECT_EQ(admission_.Submit("a", large).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(router_.Find("a"), nullptr);
  EXPECT_EQ((*admission_.Submit("a", {}))->number(), 1);
  EXPECT_EQ(admission_.Submit("a", {}).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ((*admission_.Submit("b", {}))->number(), 2);
}

TEST_F(AdmissionTest, AnAbortDoesNotOvertakeItsRequest) {
  admission_.Open();
  for (int i = 0; i < 300; ++i) {
    std::thread aborter([this] {
      std::shared_ptr<OutputStream> stream;
      while ((stream = router_.Find("a")) == nullptr) {
      }
      admission_.Abort(*stream, {}, v1::ABORT_CALL);
    });
    const auto stream = *admission_.Submit("a", {});
    aborter.join();
    const auto messages = Drained();
    ASSERT_EQ(messages.size(), 2);
    EXPECT_TRUE(messages[0].has_add());
    inbox_.Release(stream->request());
    router_.Unregister(*stream);
  }
}

TEST_F(AdmissionTest, ACallIsOpenUntilItLeaves) {
  admission_.Open();
  const auto one = *admission_.Submit("a", {}),
             two = *admission_.Submit("b", {});
  EXPECT_TRUE(admission_.SubmitAnyway("warm-up", {}).ok());  // nobody's
  admission_.Close(v1::STOPPING, absl::UnavailableError("stopping."));
  admission_.Leave(*one);
  std::atomic<bool> has_left = false;
  std::thread client([&] {
    has_left = true;
    admission_.Leave(*two);
  });
  admission_.WaitForCalls();
  EXPECT_TRUE(has_left);
  client.join();
}

TEST_F(AdmissionTest, EndCallsEndsTheWaitForThem) {
  admission_.Open();
  const auto stream = *admission_.Submit("a", {});
  admission_.Close(v1::STOPPING, absl::UnavailableError("stopping."));
  int wakes = 0;
  stream->set_reader([&] { ++wakes; });
  std::thread hurry(
      [&] { admission_.EndCalls(absl::UnavailableError("too slow")); });
  admission_.WaitForCalls();
  hurry.join();
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(stream->status(), absl::UnavailableError("too slow"));
}

TEST_F(AdmissionTest, AnAbortIsAMessageWithItsChoicesAndCause) {
  admission_.Open();
  const auto stream = *admission_.Submit("a", {});
  const uint32_t choices[] = {1, 3};
  admission_.Abort(*stream, choices, v1::ABORT_CALL);
  const auto messages = Drained();
  ASSERT_EQ(messages.size(), 2);
  EXPECT_EQ(messages[1].abort().request(), 1);
  EXPECT_THAT(messages[1].abort().choices(), ElementsAre(1, 3));
  EXPECT_EQ(messages[1].abort().cause(), v1::ABORT_CALL);
}

}  // namespace
}  // namespace lockstep
