#include "bench/gateway/streams.h"

#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

#include "bench/gateway/echo_worker.h"
#include "frontend/gateway.h"
#include "tests/testing/fake_tokenizer.h"

namespace lockstep::bench {
namespace {

constexpr int kStreams = 3;
constexpr int kTokens = 20;

// An echo worker and a gateway, in this process.
class StreamsTest : public ::testing::TestWithParam<bool> {
 protected:
  StreamsTest() {
    auto worker = EchoWorker::Start(/*vocabulary_size=*/259, &sent_);
    EXPECT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
    if (GetParam()) {
      worker_->set_pace({std::chrono::milliseconds(1), /*in_steps=*/true});
    }
    GatewayOptions options;
    options.listen = options.http_listen = "127.0.0.1:0";
    options.workers = {worker_->address()};
    absl::Notification serving;
    auto gateway = Gateway::Start(
        options, &tokenizer_,
        [&](const ServedModel&, Gateway::Ports) { serving.Notify(); });
    EXPECT_TRUE(gateway.ok()) << gateway.status();
    gateway_ = *std::move(gateway);
    serving.WaitForNotification();
  }

  void ExpectAll(const absl::StatusOr<StreamsResult>& result) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->tokens, kStreams * kTokens);
    ASSERT_EQ(result->latency_s.size(), kStreams * kTokens);
    for (const double latency : result->latency_s) EXPECT_GT(latency, 0);
  }

  StreamsOptions To(const std::string& target) {
    return {.target = target, .streams = kStreams, .tokens = kTokens};
  }
  StreamsOptions To(int port) { return To(absl::StrCat("127.0.0.1:", port)); }

  SentTimes sent_{kStreams, kTokens};
  FakeTokenizer tokenizer_;
  std::unique_ptr<EchoWorker> worker_;
  std::unique_ptr<Gateway> gateway_;
};

TEST_P(StreamsTest, EveryTokenIsReadThroughEachDoor) {
  ExpectAll(StreamFromWorker(To(worker_->address()), sent_));
  ExpectAll(StreamOverGrpc(To(gateway_->ports().grpc), sent_));
  ExpectAll(StreamOverHttp(To(gateway_->ports().http), sent_));
}

TEST_P(StreamsTest, AStreamThatBreaksIsTold) {
  const int port = gateway_->ports().http;
  gateway_ = nullptr;
  EXPECT_FALSE(StreamOverHttp(To(port), sent_).ok());
  EXPECT_FALSE(StreamOverGrpc(To("127.0.0.1:1"), sent_).ok());
}

INSTANTIATE_TEST_SUITE_P(Paced, StreamsTest, ::testing::Bool());

}  // namespace
}  // namespace lockstep::bench
