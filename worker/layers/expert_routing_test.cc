#include "worker/layers/expert_routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace lockstep {
namespace {

using ::testing::ElementsAre;

std::vector<int> Flat(absl::Span<const ExpertRouting::Rows> groups) {
  std::vector<int> flat;
  for (const auto& [expert, begin, end] : groups) {
    flat.insert(flat.end(), {expert, begin, end});
  }
  return flat;
}

ExpertRouting Grouped(int num_experts, int experts_per_token,
                      const std::vector<int32_t>& experts) {
  ExpertRouting routing(num_experts, experts_per_token, /*max_tokens=*/10);
  std::copy(experts.begin(), experts.end(), routing.experts());
  routing.Group(static_cast<int>(experts.size()) / experts_per_token);
  return routing;
}

TEST(ExpertRouting, SortsRowsByExpertThenToken) {
  const ExpertRouting routing = Grouped(5, 2, {3, 0, 0, 4, 3, 4});
  EXPECT_THAT(Flat(routing.groups()), ElementsAre(0, 0, 2, 3, 2, 4, 4, 4, 6));
  const std::vector<int32_t> token_of(routing.token_of(),
                                      routing.token_of() + 6);
  EXPECT_THAT(token_of, ElementsAre(0, 1, 0, 2, 1, 2));
  const std::vector<int32_t> row_of(routing.row_of(), routing.row_of() + 6);
  EXPECT_THAT(row_of, ElementsAre(2, 0, 1, 4, 3, 5));
}

TEST(ExpertRouting, ForgetsTheStepBefore) {
  ExpertRouting routing = Grouped(4, 1, {3, 3, 3});
  *routing.experts() = 1;
  routing.Group(1);
  EXPECT_THAT(Flat(routing.groups()), ElementsAre(1, 0, 1));
  routing.Group(0);
  EXPECT_TRUE(routing.groups().empty());
}

}  // namespace
}  // namespace lockstep
