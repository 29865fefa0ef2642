#include "frontend/generation/inflight_requests.h"

#include <absl/time/time.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "common/error_reason.h"

namespace lockstep {
namespace {

TEST(InflightRequests, RefusesAboveTheLimitAndNamesIt) {
  InflightRequests inflight({.requests = 2, .bytes = 10});
  auto first = inflight.Admit(5);
  auto second = inflight.Admit(5);
  ASSERT_TRUE(first.ok() && second.ok());
  const absl::Status status = inflight.Admit(5).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "the gateway already holds 2 requests, the limit of "
            "--max_inflight_requests; try again later.");
  EXPECT_EQ(inflight.number(), 2);
}

TEST(InflightRequests, PromptTokensHaveALimitTogether) {
  InflightRequests inflight({.requests = 9, .prompt_tokens = 10});
  {
    auto first = *inflight.Admit(1), second = *inflight.Admit(1);
    EXPECT_TRUE(first.AddPromptTokens(6).ok());
    EXPECT_TRUE(second.AddPromptTokens(3).ok());
    auto third = *inflight.Admit(1);
    const absl::Status status = third.AddPromptTokens(2);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(
        status.message(),
        "the gateway already holds prompts of 9 tokens, 2 more would pass "
        "the 10 of --max_inflight_prompt_tokens; try again later.");
    EXPECT_TRUE(third.AddPromptTokens(1).ok());
    EXPECT_EQ(inflight.prompt_tokens(), 10);
  }
  EXPECT_EQ(inflight.prompt_tokens(), 0);
  auto large = *inflight.Admit(1), other = *inflight.Admit(1);
  EXPECT_TRUE(large.AddPromptTokens(11).ok());  // as it is alone
  EXPECT_FALSE(other.AddPromptTokens(1).ok());
}

TEST(InflightRequests, ATicketGivesItsPlaceBackOnce) {
  InflightRequests inflight({.requests = 1});
  {
    InflightRequests::Ticket ticket;
    ticket = *inflight.Admit(5);
    const InflightRequests::Ticket moved = std::move(ticket);
    EXPECT_EQ(inflight.number(), 1);
  }
  EXPECT_EQ(inflight.number(), 0);
}

TEST(InflightRequests, OnceClosedItRunsOut) {
  InflightRequests inflight({.requests = 2, .bytes = 10});
  std::optional<InflightRequests::Ticket> ticket = *inflight.Admit(5);
  inflight.Close();
  EXPECT_EQ(inflight.Admit(5).status(),
            MakeError(ErrorReason::kGatewayDraining,
                      "the gateway is shutting down and takes no new "
                      "requests."));
  EXPECT_FALSE(inflight.AwaitIdle(absl::ZeroDuration()));
  std::thread waiting(
      [&] { EXPECT_TRUE(inflight.AwaitIdle(absl::InfiniteDuration())); });
  ticket.reset();
  waiting.join();
}

TEST(InflightRequests, RefusesBytesAboveTheLimitUntilSomeAreGivenBack) {
  InflightRequests inflight({.requests = 9, .bytes = 10});
  std::optional<InflightRequests::Ticket> ticket = *inflight.Admit(6);
  const auto small = inflight.Admit(4);
  EXPECT_TRUE(small.ok());
  EXPECT_EQ(inflight.Admit(1).status(),
            absl::ResourceExhaustedError(
                "the gateway already holds requests of 10 bytes, 1 more would "
                "pass the limit of 10; try again later."));
  ticket.reset();
  EXPECT_TRUE(inflight.Admit(6).ok());
}

TEST(InflightRequests, EndsThoseThatAreStillThere) {
  InflightRequests inflight({});
  std::vector<int> ended;
  const auto end = [&](int number) {
    return [&ended, number](const absl::Status& why) {
      EXPECT_EQ(why, absl::UnavailableError("bye"));
      ended.push_back(number);
    };
  };
  std::optional<InflightRequests::Ticket> gone = *inflight.Admit(1, end(1));
  const auto without = inflight.Admit(1);
  const auto there = inflight.Admit(1, end(2));
  gone.reset();
  inflight.EndAll(absl::UnavailableError("bye"));
  EXPECT_EQ(ended, std::vector<int>{2});
}

}  // namespace
}  // namespace lockstep
