#pragma once

#include <absl/synchronization/notification.h>
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
#include "frontend/routing/routed_call.h"
#include "tests/testing/fake_worker.h"

namespace lockstep::testing {

// A RoutedCall, its client and groups that answer as they are told.

using Script = FakeWorker::Script;

inline absl::Status Lost() {
  return MakeError(ErrorReason::kGroupFailed, "rank 1 is gone.");
}

// Says `text` from where the request resumes it, up to `most` characters of it;
// then it is lost, unless that was all.
inline Script Say(const std::string& text, size_t most = 1000) {
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

inline Script Fail(const absl::Status& status) {
  return [=](const auto&) {
    FakeAnswer answer;
    answer.status = status;
    return answer;
  };
}

inline Script HangAfter(const std::string& text) {
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
    options_.tokenizer.vocabulary_size = 259;
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

  void Begin(std::chrono::system_clock::time_point deadline =
                 std::chrono::system_clock::time_point::max()) {
    client_.call = std::make_shared<RoutedCall>(
        groups_.get(), request_, CallMetadata(), deadline, &client_);
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

}  // namespace lockstep::testing
