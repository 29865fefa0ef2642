#include "frontend/routing/routed_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "common/error_reason.h"
#include "frontend/routing/routed_call_test_fixture.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Fail;
using ::lockstep::testing::HangAfter;
using ::lockstep::testing::Lost;
using ::lockstep::testing::RoutedCallTest;
using ::lockstep::testing::Say;
using ::lockstep::testing::Script;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(RoutedCallTest, AnAnswerOfOneGroupIsThatOfAWorkerCall) {
  Run({Say("text")});
  EXPECT_TRUE(client_.end.ok()) << client_.end;
  EXPECT_EQ(client_.text, "text");
  EXPECT_EQ(client_.messages.size(), 7);
  EXPECT_EQ(client_.failovers, 0);
}

TEST_F(RoutedCallTest, AnotherGroupGoesOnWhereOneWasLost) {
  Run({Say("failover", 3), Say("failover", 6), Say("failover")});
  EXPECT_TRUE(client_.end.ok()) << client_.end;
  EXPECT_EQ(client_.text, "failover");
  EXPECT_EQ(client_.messages.size(), 11);  // accepted once, finished once
  EXPECT_EQ(client_.failovers, 2);
  EXPECT_EQ(groups_->counters().failovers, 2);
  EXPECT_EQ(groups_->counters().retries, 0);
  EXPECT_THAT(NumRequests(), ElementsAre(1, 1, 1));
  const auto resumed = workers_[1]->requests()[0];
  EXPECT_EQ(resumed.request_id(), "r-2");
  EXPECT_EQ(resumed.sampling().seed(), 77);
  EXPECT_THAT(resumed.resume_token_ids(), ElementsAre('f', 'a', 'i'));
}

// One token each, round and round.
TEST_F(RoutedCallTest, AnAnswerMayLoseAnyNumberOfGroupsAsLongAsItGoesOn) {
  const Script one_more = [](const v1::WorkerGenerateRequest& request) {
    return Say(std::string(30, 'x'),
               request.resume_token_ids_size() + 1)(request);
  };
  Run({one_more, one_more});
  EXPECT_TRUE(client_.end.ok()) << client_.end;
  EXPECT_EQ(client_.text, std::string(30, 'x'));
  EXPECT_EQ(client_.failovers, 29);
}

TEST_F(RoutedCallTest, GroupsWithOtherBitsAreNotAsked) {
  fingerprints_ = {"bits", "other"};
  Run({Say("text", 2), Say("text")});
  EXPECT_EQ(ErrorReasonOf(client_.end), "GROUP_FAILED") << client_.end;
  EXPECT_EQ(client_.text, "te");
  EXPECT_EQ(workers_[1]->requests().size(), 0);
  EXPECT_EQ(groups_->counters().lost_answers, 1);
}

TEST_F(RoutedCallTest, BeforeTheFirstTokenAnyGroupWillDo) {
  fingerprints_ = {"bits", "other"};
  Run({Say("text", 0), Say("text")});
  EXPECT_TRUE(client_.end.ok()) << client_.end;
  EXPECT_EQ(client_.text, "text");
  EXPECT_EQ(client_.failovers, 0);
  EXPECT_EQ(groups_->counters().retries, 1);
  EXPECT_EQ(workers_[1]->requests()[0].sampling().seed(), 77);
}

TEST_F(RoutedCallTest, ARequestThatNoGroupTakesEndsAsTheLastSaid) {
  const absl::Status full =
      MakeError(ErrorReason::kQueueFullRequests, "the queue is full.");
  Run({Fail(full), Fail(full), Fail(full), Fail(full)});
  EXPECT_EQ(ErrorReasonOf(client_.end), "QUEUE_FULL_REQUESTS") << client_.end;
  EXPECT_THAT(NumRequests(), ElementsAre(1, 1, 1, 0));
}

TEST_F(RoutedCallTest, RetriesHaveABudget) {
  options_.retry_budget = {.part_of_requests = 0.1, .most_saved = 1};
  Run({Fail(Lost()), Fail(Lost()), Say("text")});
  EXPECT_EQ(ErrorReasonOf(client_.end), "GROUP_FAILED") << client_.end;
  EXPECT_EQ(groups_->counters().retries, 1);
  EXPECT_EQ(groups_->counters().refused_retries, 1);
}

TEST_F(RoutedCallTest, WhatIsTheClientsFaultIsNotTriedAgain) {
  Run({Fail(absl::InvalidArgumentError("sampling.n is 99.")), Say("text")});
  EXPECT_EQ(client_.end.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(client_.end.message(), "sampling.n is 99.");
  EXPECT_THAT(NumRequests(), ElementsAre(1, 0));
}

TEST_F(RoutedCallTest, ARequestThatEndsThreeGroupsIsGivenUp) {
  Run({Say("poison", 2), Say("poison", 2), Say("poison", 2), Say("poison")});
  EXPECT_EQ(ErrorReasonOf(client_.end), "GROUP_FAILED") << client_.end;
  EXPECT_THAT(NumRequests(), ElementsAre(1, 1, 1, 0));
}

TEST_F(RoutedCallTest, AnAnswerThatHasBegunWaitsForAGroupThatIsFull) {
  int asked = 0;
  const Script full_for_long = [&](const v1::WorkerGenerateRequest& request) {
    if (++asked == 1) return Say("text", 2)(request);
    if (asked == 10) return Say("text")(request);
    return Fail(MakeError(ErrorReason::kQueueFullTokens, "full."))(request);
  };
  Run({full_for_long, full_for_long});
  EXPECT_TRUE(client_.end.ok()) << client_.end;
  EXPECT_EQ(client_.text, "text");
}

TEST_F(RoutedCallTest, ASilentGroupIsLeftForAnother) {
  options_.silence.first_token = absl::Milliseconds(500);
  options_.silence.between_tokens = absl::Milliseconds(500);
  Run({HangAfter(""), HangAfter("te"), Say("text")});
  EXPECT_TRUE(client_.end.ok()) << client_.end;
  EXPECT_EQ(client_.text, "text");
  EXPECT_EQ(client_.failovers, 1);
  EXPECT_EQ(groups_->counters().retries, 1);
  EXPECT_EQ(groups_->counters().silent_groups, 2);
  workers_[0]->WaitForCancels(1);
  workers_[1]->WaitForCancels(1);
}

TEST_F(RoutedCallTest, TheLastSilentGroupIsNamed) {
  options_.silence.first_token = absl::Milliseconds(500);
  Run({HangAfter("")});
  EXPECT_THAT(NumRequests(), ElementsAre(1));
  EXPECT_EQ(client_.end,
            absl::UnavailableError("the worker at " + workers_[0]->address() +
                                   " sent nothing for 500ms."));
}

TEST_F(RoutedCallTest, AnAnswerHasALimitInAll) {
  options_.request_timeout = absl::Milliseconds(100);
  Run({HangAfter("te")});
  EXPECT_EQ(client_.end.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(client_.end.message(),
              HasSubstr("the 100ms of --request_timeout"));
}

// Whoever watches the same limit cancels at about the time that it passes.
TEST_F(RoutedCallTest, ItsLimitHasItsNameThoughItIsCancelledToo) {
  options_.request_timeout = absl::Milliseconds(100);
  client_.on_message = [&](const auto&) {
    workers_[0]->WaitForCancels(1);  // its end of the call is over later
    client_.call->Cancel();
  };
  Run({HangAfter("")});
  EXPECT_EQ(client_.end.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(client_.end.message(),
              HasSubstr("the 100ms of --request_timeout"));
}

TEST_F(RoutedCallTest, CancelReachesTheGroupAtWork) {
  StartGroups({Say("text", 2), HangAfter("")});
  Begin();
  workers_[1]->WaitForRequests(1);
  client_.call->Cancel();
  client_.ended.WaitForNotification();
  workers_[1]->WaitForCancels(1);
}

// A choice met its stop string, and its group is lost before it says its
// finish.
TEST_F(RoutedCallTest, AnAbortedChoiceNeedsNoOtherGroup) {
  client_.on_message = [&](const auto& message) {
    if (message.has_delta()) client_.call->AbortChoices({0});
  };
  Run({Say("text", 1), Say("text")});
  EXPECT_TRUE(client_.end.ok()) << client_.end;
  EXPECT_EQ(client_.text, "t");
  ASSERT_EQ(client_.messages.size(), 4);
  EXPECT_EQ(client_.messages[2].finish().reason(), v1::ABORTED);
  EXPECT_TRUE(client_.messages[3].has_summary());
  EXPECT_EQ(workers_[1]->requests().size(), 0);
  while (workers_[0]->aborts().empty()) std::this_thread::yield();
  EXPECT_EQ(workers_[0]->aborts()[0].request_ids(0), "r");
}

}  // namespace
}  // namespace lockstep
