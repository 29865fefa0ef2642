#include "frontend/routing/routed_call.h"

#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/error_reason.h"
#include "frontend/routing/group_set.h"
#include "frontend/routing/policy/round_robin.h"
#include "tests/testing/fake_worker.h"

namespace lockstep {
namespace {

using ::lockstep::testing::AcceptedMessage;
using ::lockstep::testing::DeltaMessage;
using ::lockstep::testing::FakeAnswer;
using ::lockstep::testing::FakeWorker;
using ::lockstep::testing::FinishMessage;
using ::lockstep::testing::SummaryMessage;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Script = FakeWorker::Script;

absl::Status Lost() {
  return MakeError(ErrorReason::kGroupFailed, "rank 1 is gone.");
}

// Says `text` from where the request resumes it, up to `most` characters of it;
// then it is lost, unless that was all.
Script Say(const std::string& text, size_t most = 1000) {
  return [=](const v1::WorkerGenerateRequest& request) {
    FakeAnswer answer;
    answer.messages = {AcceptedMessage(request)};
    answer.messages[0].mutable_accepted()->set_seed(
        request.sampling().has_seed() ? request.sampling().seed() : 77);
    size_t at = request.resume_token_ids_size();
    for (; at < std::min(most, text.size()); ++at) {
      answer.messages.push_back(DeltaMessage(0, {text[at]}));
    }
    if (at < text.size()) {
      answer.status = Lost();
    } else {
      answer.messages.push_back(FinishMessage(0, v1::LENGTH));
      answer.messages.push_back(SummaryMessage());
    }
    return answer;
  };
}

Script Fail(const absl::Status& status) {
  return [=](const auto&) {
    FakeAnswer answer;
    answer.status = status;
    return answer;
  };
}

Script HangAfter(const std::string& text) {
  return [=](const auto& request) {
    FakeAnswer answer;
    answer.messages = {AcceptedMessage(request)};
    if (!text.empty()) answer.messages.push_back(DeltaMessage(0, text));
    answer.then = FakeAnswer::Then::kAwaitCancel;
    return answer;
  };
}

class Client : public WorkerCall::Listener {
 public:
  void OnMessage(const v1::WorkerGenerateResponse& message) override {
    for (const uint32_t id : message.delta().token_ids()) {
      text += static_cast<char>(id);
    }
    messages.push_back(message);
    if (on_message) on_message(message);
    call->Next();
  }
  void OnEnd(absl::Status status) override {
    end = std::move(status);
    failovers = call->failovers();
    ended.Notify();
  }

  std::function<void(const v1::WorkerGenerateResponse&)> on_message;
  std::shared_ptr<RoutedCall> call;
  std::string text;
  std::vector<v1::WorkerGenerateResponse> messages;
  int failovers = 0;
  absl::Status end;
  absl::Notification ended;
};

class RoutedCallTest : public ::testing::Test {
 protected:
  RoutedCallTest() {
    options_.tokenizer_vocabulary_size = 259;
    options_.retry.group_wait = absl::Milliseconds(100);
    options_.retry.first_delay = absl::Milliseconds(1);
    request_.set_request_id("r");
    request_.add_prompt_token_ids(1);
  }

  // Groups in this order, each with a script of its own.
  void StartGroups(const std::vector<Script>& scripts) {
    groups_ =
        std::make_unique<GroupSet>(options_, std::make_unique<RoundRobin>());
    groups_->Start([] {});
    std::vector<std::string> addresses;
    for (const Script& script : scripts) {
      workers_.push_back(std::make_unique<FakeWorker>());
      workers_.back()->model_info().set_fingerprint(
          fingerprints_.empty() ? "bits" : fingerprints_[addresses.size()]);
      workers_.back()->set_script(script);
      workers_.back()->Start();
      addresses.push_back(workers_.back()->address());
    }
    groups_->SetAddresses(addresses);
    while (groups_->num_ready() < static_cast<int>(scripts.size())) {
      std::this_thread::yield();
    }
  }

  void Begin() {
    client_.call = std::make_shared<RoutedCall>(
        groups_.get(), request_, CallMetadata(),
        std::chrono::system_clock::time_point::max(), &client_);
    client_.call->Start();
  }
  void Run(const std::vector<Script>& scripts) {
    StartGroups(scripts);
    Begin();
    client_.ended.WaitForNotification();
  }
  std::vector<size_t> NumRequests() const {
    std::vector<size_t> numbers;
    for (const auto& worker : workers_) {
      numbers.push_back(worker->requests().size());
    }
    return numbers;
  }

  GroupSetOptions options_;
  std::vector<std::string> fingerprints_;  // all the same, if none are given
  v1::WorkerGenerateRequest request_;
  std::vector<std::unique_ptr<FakeWorker>> workers_;
  std::unique_ptr<GroupSet> groups_;
  Client client_;
};

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

TEST_F(RoutedCallTest, TheOnlyGroupGoesOnWhenItIsBack) {
  options_.retry.group_wait = absl::InfiniteDuration();
  StartGroups({HangAfter("te")});
  absl::Notification has_text;
  client_.on_message = [&](const auto& message) {
    if (message.has_delta() && !has_text.HasBeenNotified()) has_text.Notify();
  };
  Begin();
  has_text.WaitForNotification();
  workers_[0]->Stop();
  workers_[0]->set_script(Say("text"));
  workers_[0]->Start();
  client_.ended.WaitForNotification();
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

TEST_F(RoutedCallTest, CancelEndsTheWaitForAGroup) {
  options_.retry.group_wait = absl::InfiniteDuration();
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

TEST_F(RoutedCallTest, WithNoGroupItSaysWhatIsAmiss) {
  StartGroups({Say("text")});
  workers_[0]->SetServing(false);
  while (groups_->num_ready() > 0) std::this_thread::yield();
  Begin();
  client_.ended.WaitForNotification();
  EXPECT_EQ(client_.end, groups_->Model().status());
}

}  // namespace
}  // namespace lockstep
