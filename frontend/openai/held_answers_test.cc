// Answers that are kept until they are complete: how much of them, and on which
// thread they are completed.

#include <absl/status/statusor.h>
#include <absl/strings/match.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "frontend/generation/pipeline.h"
#include "frontend/generation/spec.h"
#include "frontend/http/message.h"
#include "frontend/http/response_writer.h"
#include "frontend/openai/embeddings_call.h"
#include "frontend/openai/generate_call.h"
#include "frontend/openai/request.h"
#include "frontend/routing/group_set.h"
#include "frontend/routing/policy/round_robin.h"
#include "tests/testing/fake_tokenizer.h"
#include "tests/testing/fake_worker.h"

namespace lockstep::openai {
namespace {

using ::lockstep::testing::AcceptedMessage;
using ::lockstep::testing::DeltaMessage;
using ::lockstep::testing::FakeAnswer;
using ::lockstep::testing::FinishMessage;
using ::lockstep::testing::SummaryMessage;

// Has room for so many bytes, and keeps what it is sent.
class Client : public http::ResponseWriter {
 public:
  explicit Client(size_t room = 1 << 30) : room_(room) {}

  void Send(http::Response answer) override {
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof(name));
    thread = name;
    response = std::move(answer);
    answered.Notify();
  }
  bool Hold(size_t bytes) override {
    held = std::max(held.load(), bytes);
    return bytes <= room_;
  }
  void StartStream(http::Response, std::string) override {}
  void Write(absl::string_view) override {}
  void End(After) override {}
  void AwaitRoom(std::function<void()> resume) override { resume(); }
  void OnGone(std::function<void()>) override {}

  http::Response response;
  std::string thread;
  std::atomic<size_t> held = 0;
  absl::Notification answered;

 private:
  const size_t room_;
};

class HeldAnswersTest : public ::testing::Test {
 protected:
  HeldAnswersTest() {
    worker_.model_info().mutable_embedding()->set_dimensions(kDimensions);
    worker_.Start();
    groups_.Start([] {});
    groups_.SetAddresses({worker_.address()});
    while (groups_.num_ready() < 1) std::this_thread::yield();
  }
  ~HeldAnswersTest() override {
    while (pipeline_.inflight().number() > 0) std::this_thread::yield();
  }

  // Of so many bytes, in pieces of a thousand.
  void AnswerWith(size_t bytes, bool is_complete = true) {
    worker_.set_script([=](const auto& request) {
      FakeAnswer answer;
      answer.messages = {AcceptedMessage(request)};
      answer.messages.insert(answer.messages.end(), bytes / 1000,
                             DeltaMessage(0, std::string(1000, 'x')));
      if (is_complete) {
        answer.messages.push_back(FinishMessage(0, v1::LENGTH));
        answer.messages.push_back(SummaryMessage());
      } else {
        answer.then = FakeAnswer::Then::kAwaitCancel;
      }
      return answer;
    });
  }

  void Complete(const std::shared_ptr<Client>& client) {
    ParsedRequest parsed;
    parsed.style.endpoint = kCompletions;
    parsed.specs.resize(1);
    parsed.specs[0].model = {"fake", 100, 259};
    parsed.specs[0].prompt = {TextPrompt{"hi"}, true, "prompt"};
    GenerateCall::Start(
        &pipeline_, {}, nullptr,
        [parsed](const auto&) -> absl::StatusOr<ParsedRequest> {
          return parsed;
        },
        client);
    client->answered.WaitForNotification();
  }

  void Embed(int inputs, const std::shared_ptr<Client>& client) {
    worker_.set_script([](const auto& request) {
      FakeAnswer answer = testing::Embed(request);
      while (answer.messages[1].embedding().values_size() < kDimensions) {
        answer.messages[1].mutable_embedding()->add_values(1);
      }
      return answer;
    });
    std::string body = R"({"input": ["a")";
    for (int i = 1; i < inputs; ++i) body += R"(, "a")";
    http::Request request;
    request.body = body + "]}";
    StartEmbeddingsCall(
        &pipeline_, std::move(request), nullptr,
        [this](const http::Request& asked) {
          RequestContext context;
          context.model = *groups_.Model();
          return ParseEmbeddingsRequest(asked.body, context);
        },
        client);
    client->answered.WaitForNotification();
  }

  static constexpr int kDimensions = 1000;

  testing::FakeWorker worker_;
  FakeTokenizer tokenizer_;
  GroupSet groups_{{}, std::make_unique<RoundRobin>()};
  Pipeline pipeline_{
      PipelineOptions{/*max_inflight_requests=*/6, /*encode_threads=*/1},
      &tokenizer_, &groups_};
};

TEST_F(HeldAnswersTest, WhatIsKeptCountsTowardsTheBound) {
  AnswerWith(100'000);
  const auto client = std::make_shared<Client>();
  Complete(client);
  EXPECT_EQ(client->response.status, 200);
  EXPECT_GE(client->held, 100'000);
}

TEST_F(HeldAnswersTest, WhereThereIsNoRoomItEndsAtTheWorker) {
  AnswerWith(100'000, /*is_complete=*/false);
  const auto client = std::make_shared<Client>(/*room=*/50'000);
  Complete(client);
  EXPECT_EQ(client->response.status, 429);
  EXPECT_TRUE(absl::StrContains(client->response.body,
                                "holds too many large answers already"))
      << client->response.body;
  worker_.WaitForCancels(1);
}

TEST_F(HeldAnswersTest, EmbeddingsAreRefusedBeforeTheyAreComputed) {
  const auto client = std::make_shared<Client>(/*room=*/50'000);
  Embed(/*inputs=*/50, client);
  EXPECT_EQ(client->response.status, 429);
  EXPECT_TRUE(worker_.requests().empty());
}

TEST_F(HeldAnswersTest, EmbeddingsTakeNoMoreThanTheyWereHeldFor) {
  const auto client = std::make_shared<Client>();
  Embed(/*inputs=*/50, client);
  EXPECT_EQ(client->response.status, 200);
  EXPECT_LE(client->response.body.size(), client->held + 1000);
}

// gRPC's threads have streams to carry on.
TEST_F(HeldAnswersTest, LargeOnesAreCompletedOnAnEncodingThread) {
  AnswerWith(100'000);
  const auto text = std::make_shared<Client>();
  Complete(text);
  EXPECT_EQ(text->thread, "encode-0");
  const auto vectors = std::make_shared<Client>();
  Embed(/*inputs=*/50, vectors);
  EXPECT_EQ(vectors->thread, "encode-0");
}

}  // namespace
}  // namespace lockstep::openai
