// Calls that find no group, or lose the only one, and wait for one to come.

#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "common/error_reason.h"
#include "frontend/routing/routed_call.h"
#include "frontend/routing/routed_call_test_fixture.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Fail;
using ::lockstep::testing::HangAfter;
using ::lockstep::testing::Say;
using ::lockstep::testing::Script;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RoutedCallWaitTest : public ::lockstep::testing::RoutedCallTest {
 protected:
  RoutedCallWaitTest() { options_.retry.group_wait = absl::InfiniteDuration(); }

  void AwaitReady(int number) {
    while (groups_->num_ready() != number) std::this_thread::yield();
  }
  void AwaitWaiting() {
    while (groups_->waits().number() != 1) std::this_thread::yield();
  }
  // A call of a group that is there, and is not ready.
  void BeginWithNone(const Script& script) {
    StartGroups({script});
    workers_[0]->SetServing(false);
    AwaitReady(0);
    Begin();
    AwaitWaiting();
  }
  // A call whose group has said so much.
  void BeginWith(const std::string& text) {
    client_.on_message = [this, in_all = text.empty()](const auto& message) {
      if (has_begun_.HasBeenNotified()) return;
      if (message.has_delta() || in_all) has_begun_.Notify();
    };
    StartGroups({HangAfter(text)});
    Begin();
    has_begun_.WaitForNotification();
  }
  void Restart(const Script& script) {
    workers_[0]->Stop();
    AwaitReady(0);
    workers_[0]->set_script(script);
    workers_[0]->Start();
  }
  void ExpectAnswer(const std::string& text) {
    client_.ended.WaitForNotification();
    EXPECT_TRUE(client_.end.ok()) << client_.end;
    EXPECT_EQ(client_.text, text);
  }

  absl::Notification has_begun_;
};

TEST_F(RoutedCallWaitTest, ARequestThatFindsNoGroupGetsTheNextOneToBeReady) {
  BeginWithNone(Say("text"));
  workers_[0]->SetServing(true);
  ExpectAnswer("text");
  EXPECT_EQ(client_.failovers, 0);
  EXPECT_EQ(groups_->counters().group_waits, 1);
  EXPECT_EQ(groups_->counters().retries, 0);
}

// The wait is over when there is news: no delay that it could be left to is
// over in this test's time.
TEST_F(RoutedCallWaitTest, TheOnlyGroupGoesOnWhenItIsBack) {
  options_.retry.first_delay = absl::Hours(1);
  options_.retry.longest_delay = absl::Hours(1);
  BeginWith("te");
  Restart(Say("text"));
  ExpectAnswer("text");
  EXPECT_EQ(client_.failovers, 1);
}

TEST_F(RoutedCallWaitTest, SoItDoesWithARequestThatItHadTaken) {
  options_.retry.first_delay = absl::Hours(1);
  options_.retry.longest_delay = absl::Hours(1);
  BeginWith("");
  Restart(Say("text"));
  ExpectAnswer("text");
  EXPECT_EQ(groups_->counters().retries, 1);
}

// Its end comes first, then the news of it.
TEST_F(RoutedCallWaitTest, AGroupThatLeavesIsAskedUntilItIsKnownToBeGone) {
  const absl::Status draining =
      MakeError(ErrorReason::kWorkerDraining, "it is draining.");
  StartGroups({Fail(draining)});
  Begin();
  workers_[0]->WaitForRequests(5);  // more than two retries
  Restart(Say("text"));
  ExpectAnswer("text");
}

TEST_F(RoutedCallWaitTest, AnAnswerWaitsForAGroupOfTheSameBits) {
  BeginWith("te");
  workers_[0]->Stop();
  AwaitReady(0);
  workers_[0]->model_info().set_fingerprint("other");
  workers_[0]->set_script(Say("wrong"));
  workers_[0]->Start();
  AwaitReady(1);
  AwaitWaiting();
  workers_[0]->Stop();
  AwaitReady(0);
  workers_[0]->model_info().set_fingerprint("bits");
  workers_[0]->set_script(Say("text"));
  workers_[0]->Start();
  ExpectAnswer("text");
  EXPECT_THAT(NumRequests(), ElementsAre(2));
}

TEST_F(RoutedCallWaitTest, WithNoGroupItSaysWhatIsAmiss) {
  options_.retry.group_wait = absl::Milliseconds(10);
  StartGroups({Say("text")});
  workers_[0]->SetServing(false);
  AwaitReady(0);
  Begin();
  client_.ended.WaitForNotification();
  EXPECT_EQ(client_.end, groups_->Model().status());
  EXPECT_EQ(groups_->waits().number(), 0);
}

TEST_F(RoutedCallWaitTest, AGroupThatIsFullIsNotWaitedFor) {
  Run({Fail(MakeError(ErrorReason::kQueueFullRequests, "full."))});
  EXPECT_EQ(ErrorReasonOf(client_.end), "QUEUE_FULL_REQUESTS") << client_.end;
  EXPECT_THAT(NumRequests(), ElementsAre(1));
}

TEST_F(RoutedCallWaitTest, TheClientsDeadlineEndsTheWait) {
  StartGroups({Say("text")});
  workers_[0]->SetServing(false);
  AwaitReady(0);
  Begin(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  client_.ended.WaitForNotification();
  EXPECT_EQ(client_.end.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(client_.end.message(), HasSubstr("there was no group"));
}

TEST_F(RoutedCallWaitTest, TheLimitInAllEndsTheWait) {
  options_.request_timeout = absl::Milliseconds(50);
  StartGroups({Say("text")});
  workers_[0]->SetServing(false);
  AwaitReady(0);
  Begin();
  client_.ended.WaitForNotification();
  EXPECT_EQ(client_.end.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(client_.end.message(), HasSubstr("50ms of --request_timeout"));
}

TEST_F(RoutedCallWaitTest, CancelEndsTheWaitForAFirstGroup) {
  BeginWithNone(Say("text"));
  client_.call->Cancel();
  client_.ended.WaitForNotification();
  EXPECT_EQ(client_.end.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(groups_->waits().number(), 0);
}

TEST_F(RoutedCallWaitTest, CancelEndsTheWaitForAnother) {
  options_.retry.first_delay = absl::Hours(1);
  options_.retry.longest_delay = absl::Hours(1);
  StartGroups({Say("text", 2)});
  Begin();
  // Whether it is lost already or not.
  workers_[0]->WaitForRequests(1);
  client_.call->Cancel();
  client_.ended.WaitForNotification();
  EXPECT_FALSE(client_.end.ok());
}

TEST_F(RoutedCallWaitTest, TheEndOfWaitsIsThatOfARequest) {
  BeginWithNone(Say("text"));
  const absl::Status why = absl::UnavailableError("try another gateway.");
  groups_->EndWaits(why);
  client_.ended.WaitForNotification();
  EXPECT_EQ(client_.end, why);
}

TEST_F(RoutedCallWaitTest, TheEndOfWaitsIsNotThatOfAnAnswer) {
  BeginWith("te");
  workers_[0]->Stop();
  AwaitReady(0);
  AwaitWaiting();
  groups_->EndWaits(absl::UnavailableError("try another gateway."));
  workers_[0]->set_script(Say("text"));
  workers_[0]->Start();
  ExpectAnswer("text");
}

}  // namespace
}  // namespace lockstep
