#include "frontend/generation/admission.h"

#include <gtest/gtest.h>

#include <optional>

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

}  // namespace
}  // namespace lockstep
