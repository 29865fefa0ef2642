#include "bench/serving/serving_clients.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/testing/gateway_test_fixture.h"

namespace lockstep::bench {
namespace {

using testing::FakeAnswer;

class ServingClients : public testing::GatewayTest {
 protected:
  ServingOptions Options() const {
    ServingOptions options;
    options.target = absl::StrCat("127.0.0.1:", gateway_->ports().grpc);
    options.traffic.clients = 3;
    options.traffic.rounds = 2;
    options.traffic.prompt_tokens = 5;
    options.traffic.output_tokens = 4;
    options.traffic.stagger = std::chrono::milliseconds(1);
    return options;
  }
};

TEST_F(ServingClients, AskRoundAfterRoundAndSeeEveryToken) {
  const auto result = RunServingClients(Options());
  ASSERT_TRUE(result.ok()) << result.status();
  constexpr int kRequests = 3 * 2;
  EXPECT_EQ(result->tokens, kRequests * 4);  // "né!" is 4 bytes, a token each
  EXPECT_EQ(result->first_token_s.size(), kRequests);
  EXPECT_GT(result->seconds, 0);

  const auto requests = worker_.requests();
  ASSERT_EQ(requests.size(), kRequests);
  for (const v1::WorkerGenerateRequest& request : requests) {
    EXPECT_EQ(request.prompt_token_ids_size(), 5);
    EXPECT_EQ(request.sampling().max_tokens(), 4);
    EXPECT_EQ(request.sampling().temperature(), 0);
    EXPECT_TRUE(request.sampling().ignore_eos());
  }
}

TEST_F(ServingClients, FailWithTheFirstRequestThatDoes) {
  worker_.set_script([](const auto&) {
    FakeAnswer answer;
    answer.status = absl::ResourceExhaustedError("the queue is full.");
    return answer;
  });
  const auto result = RunServingClients(Options());
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace lockstep::bench
