#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "frontend/routing/policy/least_load.h"
#include "frontend/routing/policy/make_policy.h"
#include "frontend/routing/policy/page_chain.h"
#include "frontend/routing/policy/prefix_affinity.h"
#include "frontend/routing/policy/prefix_hash.h"
#include "frontend/routing/policy/round_robin.h"

namespace lockstep {
namespace {

using Groups = std::vector<GroupView>;

// Idle groups 1 to `number`.
Groups Idle(int number) {
  Groups groups(number);
  for (int i = 0; i < number; ++i) {
    groups[i].id = i + 1;
    groups[i].key = MixHashes(7, i);
  }
  return groups;
}

std::vector<uint32_t> TokenRun(uint32_t first, int count) {
  std::vector<uint32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

GroupId PickOf(RoutingPolicy& policy, const std::vector<uint32_t>& prompt,
               const Groups& groups) {
  return groups[policy.Pick({.prompt_token_ids = prompt}, groups).index].id;
}

TEST(RoundRobin, TakesTurnsAlsoAsGroupsComeAndGo) {
  RoundRobin policy;
  Groups groups = Idle(3);
  std::string order;
  for (int i = 0; i < 4; ++i)
    order += std::to_string(PickOf(policy, {}, groups));
  groups.erase(groups.begin() + 1);
  for (int i = 0; i < 3; ++i)
    order += std::to_string(PickOf(policy, {}, groups));
  EXPECT_EQ(order,
            "1231"
            "313");
}

TEST(LeastLoad, EqualOnesTakeTurns) {
  LeastLoad policy;
  const Groups groups = Idle(3);
  std::string order;
  for (int i = 0; i < 6; ++i)
    order += std::to_string(PickOf(policy, {}, groups));
  EXPECT_EQ(order, "123123");
}

TEST(LeastLoad, WaitingTokensSequencesAndPressureCount) {
  LeastLoad policy;
  Groups groups = Idle(3);
  groups[0].waiting_tokens = 1000;
  groups[1].sequences = 7;   // 896 tokens
  groups[2].kv_usage = 0.8;  // 1200 tokens
  EXPECT_EQ(PickOf(policy, {}, groups), 2);
  groups[1].sequences = 10;
  EXPECT_EQ(PickOf(policy, {}, groups), 1);
  groups[2].kv_usage = 0.5;
  EXPECT_EQ(PickOf(policy, {}, groups), 3);
  groups[2].kv_usage = 1;  // no room, and yet a finite cost
  EXPECT_EQ(PickOf(policy, {}, groups), 1);
}

TEST(PrefixHash, EqualBeginningsMeetAtEveryGateway) {
  PrefixHash one, other;
  const Groups groups = Idle(8);
  std::vector<int> hits(9);
  for (uint32_t first = 0; first < 800; ++first) {
    const auto prompt = TokenRun(1000 * first, 256);
    auto longer = prompt;
    longer.push_back(first);
    const GroupId group = PickOf(one, prompt, groups);
    EXPECT_EQ(PickOf(other, longer, groups), group);
    ++hits[group];
  }
  for (int id = 1; id <= 8; ++id) EXPECT_NEAR(hits[id], 100, 40) << id;
}

TEST(PrefixHash, OnlyThoseOfALostGroupMove) {
  PrefixHash policy;
  const Groups groups = Idle(4);
  const Groups rest(groups.begin() + 1, groups.end());
  for (uint32_t first = 0; first < 100; ++first) {
    const GroupId group = PickOf(policy, {first}, groups);
    if (group != 1) {
      EXPECT_EQ(PickOf(policy, {first}, rest), group);
    }
  }
}

TEST(PrefixHash, AHotPrefixSpreadsBeyondAQuarterAboveTheAverage) {
  PrefixHash policy;
  Groups groups = Idle(4);
  for (int i = 0; i < 400; ++i) {
    ++groups[policy.Pick({.prompt_token_ids = {}}, groups).index].sequences;
  }
  for (const GroupView& group : groups) {
    EXPECT_LE(group.sequences, 126);
    EXPECT_GE(group.sequences, 20);
  }
}

class PrefixAffinityTest : public ::testing::Test {
 protected:
  PrefixAffinityTest() {
    for (GroupId id = 1; id <= 3; ++id) policy_.OnNewGroup(id, 1 << 16);
  }

  PrefixAffinity policy_;
  Groups groups_ = Idle(3);
};

TEST_F(PrefixAffinityTest, GoesWhereItsPrefixIs) {
  const auto shared = TokenRun(0, 160);
  const GroupId first = PickOf(policy_, shared, groups_);
  EXPECT_NE(PickOf(policy_, TokenRun(500, 160), groups_), first);
  auto longer = shared;
  longer.insert(longer.end(), 40, 7);
  const Route route = policy_.Pick({.prompt_token_ids = longer}, groups_);
  EXPECT_EQ(groups_[route.index].id, first);
  EXPECT_EQ(route.tokens, 40);
}

// 160 tokens saved outweigh one sequence, and not two.
TEST_F(PrefixAffinityTest, LoadOutweighsWhatAPrefixSaves) {
  const auto shared = TokenRun(0, 160);
  const GroupId first = PickOf(policy_, shared, groups_);
  groups_[first - 1].sequences = 1;
  EXPECT_EQ(PickOf(policy_, shared, groups_), first);
  groups_[first - 1].sequences = 2;
  EXPECT_NE(PickOf(policy_, shared, groups_), first);
}

TEST_F(PrefixAffinityTest, ANewProcessHasNothingCached) {
  const auto shared = TokenRun(0, 160);
  const GroupId first = PickOf(policy_, shared, groups_);
  policy_.OnNewGroup(first, 1 << 16);
  EXPECT_NE(PickOf(policy_, shared, groups_), first);  // it takes turns
}

TEST_F(PrefixAffinityTest, AHotPrefixSpreads) {
  const auto shared = TokenRun(0, 160);
  for (int i = 0; i < 300; ++i) {
    const Route route = policy_.Pick({.prompt_token_ids = shared}, groups_);
    ++groups_[route.index].sequences;
  }
  for (const GroupView& group : groups_) EXPECT_NEAR(group.sequences, 100, 10);
}

TEST(MakeRoutingPolicy, KnowsEachByName) {
  for (const char* name :
       {"round_robin", "least_load", "prefix_hash", "prefix_affinity"}) {
    EXPECT_TRUE(MakeRoutingPolicy(name).ok()) << name;
  }
  EXPECT_EQ(MakeRoutingPolicy("random").status(),
            absl::InvalidArgumentError(
                "--routing_policy is \"random\"; it must be round_robin, "
                "least_load, prefix_hash or prefix_affinity."));
}

}  // namespace
}  // namespace lockstep
