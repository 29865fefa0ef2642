#include "frontend/generation/admission.h"

#include <absl/time/time.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <utility>

namespace lockstep {
namespace {

TEST(Admission, RefusesAboveTheLimitAndNamesIt) {
  Admission admission(2);
  auto first = admission.Admit();
  auto second = admission.Admit();
  ASSERT_TRUE(first.ok() && second.ok());
  const absl::Status status = admission.Admit().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "the gateway already holds 2 requests, the limit of "
            "--max_inflight_requests; try again later.");
  EXPECT_EQ(admission.in_flight(), 2);
}

TEST(Admission, ATicketGivesItsPlaceBackOnce) {
  Admission admission(1);
  {
    Admission::Ticket ticket;
    ticket = *admission.Admit();
    const Admission::Ticket moved = std::move(ticket);
    EXPECT_EQ(admission.in_flight(), 1);
  }
  EXPECT_EQ(admission.in_flight(), 0);
}

TEST(Admission, OnceClosedItRunsOut) {
  Admission admission(2);
  std::optional<Admission::Ticket> ticket = *admission.Admit();
  admission.Close();
  EXPECT_EQ(admission.Admit().status(),
            absl::UnavailableError("the gateway is shutting down and takes no "
                                   "new requests."));
  EXPECT_FALSE(admission.AwaitIdle(absl::ZeroDuration()));
  std::thread waiting(
      [&] { EXPECT_TRUE(admission.AwaitIdle(absl::InfiniteDuration())); });
  ticket.reset();
  waiting.join();
}

}  // namespace
}  // namespace lockstep
