#include "common/request_id.h"

#include <gtest/gtest.h>

#include <regex>

namespace lockstep {
namespace {

TEST(RequestId, IsShortAndFitForALog) {
  EXPECT_TRUE(CheckRequestId("id", "a.B_9-").ok());
  EXPECT_TRUE(CheckRequestId("id", std::string(128, 'x')).ok());
  EXPECT_EQ(CheckRequestId("id", ""),
            absl::InvalidArgumentError(
                "id is empty; leave it out to have one made."));
  EXPECT_EQ(CheckRequestId("id", std::string(129, 'x')),
            absl::InvalidArgumentError(
                "id is 129 bytes long; at most 128 are allowed."));
  EXPECT_EQ(CheckRequestId("id", "a b"),
            absl::InvalidArgumentError(
                "id has a character outside [A-Za-z0-9._-] at byte 1."));
}

TEST(RequestId, OneThatIsMadeIsUniqueAndAllowed) {
  const std::string one = MakeRequestId("gen");
  EXPECT_TRUE(std::regex_match(one, std::regex("gen-[0-9a-f]{16}")));
  EXPECT_NE(one, MakeRequestId("gen"));
  const std::string cut = MakeRequestId(std::string(128, 'x'));
  EXPECT_EQ(cut.size(), kMaxRequestIdBytes);
  EXPECT_TRUE(CheckRequestId("id", cut).ok());
}

}  // namespace
}  // namespace lockstep
