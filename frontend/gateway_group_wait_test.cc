// A gateway whose only group is away for a moment.

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/error_reason.h"
#include "common/grpc_status.h"
#include "common/health.pb.h"
#include "proto/inference.pb.h"
#include "tests/testing/fake_worker.h"
#include "tests/testing/gateway_test_fixture.h"
#include "tests/testing/http/openai_client.h"
#include "tests/testing/http/openai_test_fixture.h"
#include "tests/testing/http/raw_connection.h"
#include "tests/testing/http/scraped.h"

namespace lockstep {
namespace {

using ::grpc::health::v1::HealthCheckResponse;
using nlohmann::json;
using testing::AcceptedMessage;
using testing::DeltaMessage;
using testing::Embed;
using testing::FakeAnswer;
using testing::Fetch;
using testing::OpenAiAnswer;
using testing::Outcome;
using testing::RawConnection;
using testing::Say;
using testing::Scraped;
using testing::TextRequest;

class GatewayGroupWaitTest : public testing::OpenAiTest {
 protected:
  GatewayGroupWaitTest()
      : OpenAiTest([](GatewayOptions* options) {
          // Nothing here ends by itself.
          options->routing.retry.group_wait = absl::InfiniteDuration();
          options->drain_timeout = absl::Hours(24);
          options->pipeline.max_inflight_requests = 16;
        }) {
    worker_.set_script([](const auto& request) {
      return request.has_embedding() ? Embed(request) : Say(request, "né!");
    });
    worker_.Stop();
    WaitForHealth(HealthCheckResponse::NOT_SERVING);
    worker_.model_info().set_fingerprint("bits");
  }
  ~GatewayGroupWaitTest() override {
    for (std::thread& client : clients_) client.join();
  }

  double Metric(const std::string& name) {
    return Scraped(metrics_.Text())[absl::StrCat("lockstep_gateway_", name)];
  }
  void AwaitMetric(const std::string& name, double value) {
    while (Metric(name) != value) std::this_thread::yield();
  }
  void AwaitWaiting(int number) { AwaitMetric("waiting_requests", number); }

  // Each on a thread of its own, which has ended after JoinAll.
  void Ask(std::function<void()> ask) { clients_.emplace_back(std::move(ask)); }
  void JoinAll() {
    for (std::thread& client : clients_) client.join();
    clients_.clear();
  }

  std::vector<std::thread> clients_;
};

TEST_F(GatewayGroupWaitTest, EveryKindOfRequestIsAnsweredWhenItIsBack) {
  Ask([&] { EXPECT_EQ(Generate(TextRequest()).Text(), "né!"); });
  Ask([&] { EXPECT_EQ(Chat({}).status, 200); });
  Ask([&] {
    const OpenAiAnswer answer = Complete({{"prompt", "a"}, {"stream", true}});
    EXPECT_TRUE(answer.done) << answer.json;
  });
  Ask([&] {
    grpc::ClientContext context;
    v1::EmbedRequest request;
    request.add_inputs()->set_text("hi");
    v1::EmbedResponse response;
    EXPECT_TRUE(stub_->Embed(&context, request, &response).ok());
  });
  for (const auto& [path, body] : std::vector<std::pair<std::string, json>>{
           {"/v1/embeddings", {{"input", "hi"}}},
           {"/tokenize", {{"prompt", "hi"}}},
           {"/detokenize", {{"tokens", {104, 105}}}}}) {
    Ask([this, path = path, body = body] {
      EXPECT_EQ(Fetch(http_port(), path, body.dump()).status, 200) << path;
    });
  }
  AwaitWaiting(7);
  EXPECT_EQ(Metric("requests_in_flight"), 7);
  worker_.Start();
  JoinAll();
  EXPECT_EQ(Metric("group_waits_total"), 7);
  AwaitMetric("requests_in_flight", 0);
}

TEST_F(GatewayGroupWaitTest, WhoHangsUpWaitsNoLonger) {
  RawConnection over_http(http_port());
  const std::string body = R"({"prompt":"a"})";
  over_http.Send(
      absl::StrCat("POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: "
                   "application/json\r\ncontent-length: ",
                   body.size(), "\r\n\r\n", body));
  grpc::ClientContext context;
  const auto stream = stub_->Generate(&context, TextRequest());
  AwaitWaiting(2);
  over_http.Close();
  AwaitWaiting(1);
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  AwaitWaiting(0);
  AwaitMetric("requests_in_flight", 0);
}

TEST_F(GatewayGroupWaitTest, ADeadlineEndsTheWait) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(200));
  const auto stream = stub_->Generate(&context, TextRequest());
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  AwaitMetric("requests_in_flight", 0);
}

TEST_F(GatewayGroupWaitTest, ThoseWhoWaitAreHeldRequests) {
  for (int i = 0; i < 16; ++i) {
    Ask([&] { EXPECT_TRUE(Generate(TextRequest()).status.ok()); });
  }
  AwaitWaiting(16);
  const absl::Status refused = FromGrpc(Generate(TextRequest()).status);
  EXPECT_EQ(ErrorReasonOf(refused), "OVERLOADED") << refused;
  worker_.Start();
  JoinAll();
}

TEST_F(GatewayGroupWaitTest, ADrainRefusesThemAtOnce) {
  const auto expect_draining = [](const std::string& reason) {
    EXPECT_EQ(reason, "GATEWAY_DRAINING");
  };
  Ask([&] {
    expect_draining(ErrorReasonOf(FromGrpc(Generate(TextRequest()).status)));
  });
  Ask([&] { expect_draining(Chat({}).json["error"]["reason"]); });
  Ask([&] {
    const auto answer = Fetch(http_port(), "/tokenize", R"({"prompt":"hi"})");
    expect_draining(json::parse(answer.body)["error"]["reason"]);
  });
  AwaitWaiting(3);
  gateway_->Drain();
  JoinAll();
}

// What was said of an answer is not lost, as it could not be had elsewhere.
TEST_F(GatewayGroupWaitTest, AnAnswerThatHasBegunGoesOnInADrain) {
  worker_.set_script([](const auto& request) {
    FakeAnswer answer = Say(request, "né!");
    auto& messages = answer.messages;
    if (request.resume_token_ids_size() == 0) {
      messages.resize(2);
      answer.then = FakeAnswer::Then::kAwaitCancel;
    } else {
      messages.erase(messages.begin() + 1,
                     messages.begin() + 1 + request.resume_token_ids_size());
    }
    return answer;
  });
  worker_.Start();
  WaitForHealth(HealthCheckResponse::SERVING);
  grpc::ClientContext context;
  const auto stream = stub_->Generate(&context, TextRequest());
  Outcome outcome;
  v1::GenerateResponse message;
  while (outcome.Text().empty() && stream->Read(&message)) {
    outcome.messages.push_back(message);
  }
  worker_.Stop();
  AwaitMetric("group_waits_total", 1);
  Ask([&] { gateway_->Drain(); });
  while (health_.report().phase != Phase::kDraining) std::this_thread::yield();
  worker_.Start();
  while (stream->Read(&message)) outcome.messages.push_back(message);
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(outcome.Text(), "né!");
  JoinAll();
}

}  // namespace
}  // namespace lockstep
