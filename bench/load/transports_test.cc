// Both protocols, against a gateway whose worker says what it is told.

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/load/grpc_transport.h"
#include "bench/load/http_transport.h"
#include "tests/testing/gateway_test_fixture.h"

namespace lockstep::bench {
namespace {

using testing::FakeAnswer;

class Answer : public Listener {
 public:
  void OnTokens(absl::Span<const uint32_t> more) override {
    EXPECT_FALSE(ended);
    EXPECT_FALSE(more.empty());
    ids.insert(ids.end(), more.begin(), more.end());
  }
  void OnEnd(const absl::Status& end) override {
    EXPECT_FALSE(ended);
    ended = true;
    status = end;
  }

  std::vector<uint32_t> ids;
  bool ended = false;
  absl::Status status;
};

class TransportsTest : public testing::GatewayTest,
                       public ::testing::WithParamInterface<const char*> {
 protected:
  TransportsTest() {
    const auto at = [](int port) { return absl::StrCat("127.0.0.1:", port); };
    if (GetParam() == std::string("grpc")) {
      transport_ =
          std::make_unique<GrpcTransport>(at(gateway_->ports().grpc), 2);
    } else {
      transport_ =
          std::make_unique<HttpTransport>(at(gateway_->ports().http), "");
    }
  }

  // All of them at the same time.
  void Ask(std::vector<Answer>& answers) {
    for (Answer& answer : answers) {
      transport_->Start({.ids = {5, 6, 7}, .output_tokens = 4}, &answer);
    }
    for (Answer& answer : answers) {
      while (!answer.ended) transport_->HandleOne(Clock::time_point::max());
    }
  }

  std::unique_ptr<Transport> transport_;
};

TEST_P(TransportsTest, BringEveryTokenOfManyAnswers) {
  for (int round = 0; round < 2;
       ++round) {  // the second on the same connections
    std::vector<Answer> answers(5);
    Ask(answers);
    for (const Answer& answer : answers) {
      EXPECT_TRUE(answer.status.ok()) << answer.status;
      EXPECT_EQ(answer.ids.size(), 4);  // "né!", a token a byte
    }
  }
  const auto requests = worker_.requests();
  ASSERT_EQ(requests.size(), 10);
  for (const v1::WorkerGenerateRequest& request : requests) {
    EXPECT_EQ(request.prompt_token_ids_size(), 3);
    EXPECT_EQ(request.prompt_token_ids(0), 5);
    EXPECT_EQ(request.sampling().max_tokens(), 4);
    EXPECT_EQ(request.sampling().temperature(), 0);
    EXPECT_TRUE(request.sampling().ignore_eos());
  }
}

TEST_P(TransportsTest, TellHowARequestFailed) {
  worker_.set_script([](const auto&) {
    FakeAnswer answer;
    answer.status = absl::ResourceExhaustedError("the queue is full.");
    return answer;
  });
  std::vector<Answer> answers(1);
  Ask(answers);
  EXPECT_EQ(answers[0].status.code(), absl::StatusCode::kResourceExhausted)
      << answers[0].status;
  EXPECT_TRUE(answers[0].ids.empty());
}

TEST_P(TransportsTest, ReturnAtTheDeadlineWhereNothingHappens) {
  transport_->HandleOne(Clock::now() + std::chrono::milliseconds(1));
}

TEST_P(TransportsTest, TellThatNobodyIsThere) {
  gateway_.reset();
  std::vector<Answer> answers(1);
  Ask(answers);
  EXPECT_EQ(answers[0].status.code(), absl::StatusCode::kUnavailable);
}

INSTANTIATE_TEST_SUITE_P(Protocols, TransportsTest,
                         ::testing::Values("grpc", "openai"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lockstep::bench
