#include "frontend/generation/embed_batch.h"

#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "frontend/generation/pipeline.h"
#include "frontend/routing/group_set.h"
#include "frontend/routing/policy/round_robin.h"
#include "tests/testing/fake_tokenizer.h"
#include "tests/testing/fake_worker.h"

namespace lockstep {
namespace {

using ::lockstep::testing::AcceptedMessage;
using ::lockstep::testing::Embed;
using ::lockstep::testing::FakeAnswer;
using ::lockstep::testing::FakeWorker;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kBytes = 10;  // of a request

class EmbedBatchTest : public ::testing::Test {
 protected:
  EmbedBatchTest() {
    worker_.set_script([](const auto& request) { return Embed(request); });
    worker_.model_info().set_fingerprint("bits");
    other_worker_.model_info().set_fingerprint("bits");
    other_worker_.set_script(
        [](const auto& request) { return Embed(request); });
    worker_.Start();
    groups_.Start([] {});
    Serve({&worker_});
    spec_.each.worker_request_id = "worker-request";
    spec_.each.model = {"fake", /*max_context_tokens=*/100, 259};
    spec_.each.embedding.emplace().set_dimensions(2);
  }

  void Serve(const std::vector<FakeWorker*>& workers) {
    std::vector<std::string> addresses;
    for (FakeWorker* worker : workers) addresses.push_back(worker->address());
    groups_.SetAddresses(addresses);
    while (groups_.num_ready() < static_cast<int>(workers.size())) {
      std::this_thread::yield();
    }
  }

  void AddInput(const std::string& text) {
    spec_.inputs.push_back({TextPrompt{text}, true, "input"});
  }

  std::shared_ptr<EmbedBatch> Start(Parser<EmbedSpec> parse) {
    auto batch = std::make_shared<EmbedBatch>(
        &pipeline_, kBytes, std::move(parse), Caller{},
        [this](absl::StatusOr<EmbedResult> result) {
          result_ = std::move(result);
          ended_.Notify();
        });
    batch->Start();
    return batch;
  }

  const absl::StatusOr<EmbedResult>& Run() {
    Start([this] { return spec_; });
    ended_.WaitForNotification();
    EXPECT_EQ(pipeline_.inflight().number(), 0);
    return result_;
  }

  // Accepts, and then says nothing more.
  void Hang() {
    worker_.set_script([](const auto& request) {
      FakeAnswer answer;
      answer.messages = {AcceptedMessage(request)};
      answer.then = FakeAnswer::Then::kAwaitCancel;
      return answer;
    });
  }

  FakeWorker worker_;
  FakeWorker other_worker_;  // not started
  FakeTokenizer tokenizer_;
  GroupSet groups_{{}, std::make_unique<RoundRobin>()};
  Pipeline pipeline_{
      PipelineOptions{/*max_inflight_requests=*/6, /*encode_threads=*/1},
      &tokenizer_, &groups_};
  EmbedSpec spec_;
  absl::StatusOr<EmbedResult> result_;
  absl::Notification ended_;
};

TEST_F(EmbedBatchTest, EachInputHasItsVectorInTheirOrder) {
  AddInput("a");
  AddInput("bcd");
  AddInput("ef");
  spec_.each.priority = 7;
  const auto& result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->embeddings.size(), 3);
  EXPECT_THAT(result->embeddings[0].values(), ElementsAre(2, 'a'));
  EXPECT_THAT(result->embeddings[1].values(), ElementsAre(4, 'd'));
  EXPECT_THAT(result->embeddings[2].values(), ElementsAre(3, 'f'));
  EXPECT_EQ(result->usage.prompt_tokens(), 2 + 4 + 3);
  for (const auto& request : worker_.requests()) {
    EXPECT_EQ(request.embedding().dimensions(), 2);
    EXPECT_FALSE(request.has_sampling());
    EXPECT_EQ(request.priority(), 7);
    EXPECT_THAT(request.request_id(), HasSubstr("worker-request-"));
  }
}

TEST_F(EmbedBatchTest, MoreInputsThanFitAtOnceAreAskedForOneAfterAnother) {
  constexpr int kInputs = 50;
  for (int i = 0; i < kInputs; ++i) AddInput(std::string(i + 1, 'x'));
  const auto& result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  for (int i = 0; i < kInputs; ++i) {
    EXPECT_EQ(result->embeddings[i].values(0), i + 2) << i;
  }
}

TEST_F(EmbedBatchTest, AnInputThatIsCutKeepsItsEndAndItsBos) {
  AddInput("abcdef");
  spec_.each.truncation = 3;
  ASSERT_TRUE(Run().ok()) << result_.status();
  EXPECT_THAT(worker_.requests()[0].prompt_token_ids(),
              ElementsAre(FakeTokenizer::kBos, 'e', 'f'));
}

TEST_F(EmbedBatchTest, AnInputMayFillTheContextAndNoMore) {
  AddInput(std::string(99, 'x'));
  ASSERT_TRUE(Run().ok()) << result_.status();
}

TEST_F(EmbedBatchTest, OneInputThatIsTooLongIsTheErrorOfAll) {
  AddInput("a");
  AddInput(std::string(100, 'x'));
  const auto& result = Run();
  EXPECT_TRUE(absl::IsInvalidArgument(result.status()));
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("is 101 tokens long; at most 100 fit"));
}

TEST_F(EmbedBatchTest, WhatTheParserSaysIsTheError) {
  Start([]() -> absl::StatusOr<EmbedSpec> {
    return absl::InvalidArgumentError("no.");
  });
  ended_.WaitForNotification();
  EXPECT_EQ(result_.status(), absl::InvalidArgumentError("no."));
  EXPECT_EQ(pipeline_.inflight().number(), 0);
}

TEST_F(EmbedBatchTest, ACancelEndsAllThatRuns) {
  Hang();
  for (int i = 0; i < 9; ++i) AddInput("x");
  const auto batch = Start([this] { return spec_; });
  worker_.WaitForRequests(5);  // as many as may run
  batch->Cancel(absl::CancelledError("the client is gone."));
  ended_.WaitForNotification();
  EXPECT_EQ(result_.status(), absl::CancelledError("the client is gone."));
  EXPECT_EQ(worker_.requests().size(), 5);
  worker_.WaitForCancels(5);
}

TEST_F(EmbedBatchTest, ItsLengthBoundsHowManyRunAtOnce) {
  Hang();
  // Four contexts of 100 tokens, by bytes.
  for (int i = 0; i < 9; ++i) AddInput(std::string(90, 'x'));
  const auto batch = Start([this] { return spec_; });
  worker_.WaitForRequests(4);
  batch->Cancel(absl::CancelledError("enough."));
  ended_.WaitForNotification();
  EXPECT_EQ(worker_.requests().size(), 4);
}

TEST_F(EmbedBatchTest, AGroupThatIsLostIsReplacedByAnother) {
  other_worker_.Start();
  Serve({&worker_, &other_worker_});
  worker_.set_script([](const auto& request) {
    FakeAnswer answer;
    answer.messages = {AcceptedMessage(request)};
    answer.status = absl::UnavailableError("a rank died.");
    return answer;
  });
  AddInput("abc");
  const auto& result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->embeddings[0].values(), ElementsAre(4, 'c'));
}

TEST_F(EmbedBatchTest, AnAbortAtTheWorkerIsAnError) {
  worker_.set_script([](const auto& request) {
    FakeAnswer answer;
    answer.messages = {AcceptedMessage(request),
                       testing::FinishMessage(0, v1::ABORTED),
                       testing::SummaryMessage()};
    return answer;
  });
  AddInput("abc");
  EXPECT_TRUE(absl::IsUnavailable(Run().status())) << result_.status();
}

}  // namespace
}  // namespace lockstep
