#include "frontend/routing/balancer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

// Takes the last group, and keeps what it was shown.
class LastGroup : public RoutingPolicy {
 public:
  Route Pick(const RouteRequest& request,
             absl::Span<const GroupView> groups) override {
    seen.assign(groups.begin(), groups.end());
    return {groups.size() - 1, request.num_tokens()};
  }
  void OnNewGroup(GroupId id, int64_t kv_capacity_tokens) override {
    news.push_back({id, kv_capacity_tokens});
  }
  void OnGroupGone(GroupId id) override { gone.push_back(id); }

  std::vector<GroupView> seen;
  std::vector<std::pair<GroupId, int64_t>> news;
  std::vector<GroupId> gone;
};

class BalancerTest : public ::testing::Test {
 protected:
  BalancerTest() {
    auto policy = std::make_unique<LastGroup>();
    policy_ = policy.get();
    balancer_ =
        std::make_unique<Balancer>(std::move(policy), Balancer::Options());
    for (const GroupId id : {1, 2}) {
      balancer_->AddGroup(id, "group " + std::to_string(id));
      balancer_->OnNewGroup(id, 1000);
    }
  }

  // Of 100 tokens and two choices.
  Balancer::Share Pick(std::vector<GroupId> candidates = {1, 2}) {
    const std::vector<uint32_t> prompt(100);
    return balancer_->Pick({.prompt_token_ids = prompt}, 2, candidates, now_);
  }
  void Report(GroupId id) { balancer_->OnLoad(id, {10, 1, 0.5}, now_); }
  // What the policy is shown of group 2.
  GroupView Look() {
    balancer_->OnEnd(Pick());
    return policy_->seen.back();
  }
  std::string Offered() {
    balancer_->OnEnd(Pick());
    std::string ids;
    for (const GroupView& view : policy_->seen) ids += std::to_string(view.id);
    return ids;
  }
  void Fail(GroupId id, int times) {
    for (int i = 0; i < times; ++i) {
      Balancer::Share share = Pick({id});
      balancer_->OnFailure(&share, now_);
      balancer_->OnEnd(share);
    }
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  LastGroup* policy_;
  std::unique_ptr<Balancer> balancer_;
};

TEST_F(BalancerTest, WhatWasSentCountsUntilAReportHasIt) {
  Report(2);
  EXPECT_EQ(Look().waiting_tokens, 10);
  EXPECT_EQ(Look().sequences, 1);
  EXPECT_EQ(Look().kv_usage, 0.5);
  Balancer::Share share = Pick();
  EXPECT_EQ(Look().waiting_tokens, 110);
  EXPECT_EQ(Look().sequences, 3);
  Report(2);  // it is not accepted yet, so it is not in this one
  EXPECT_EQ(Look().waiting_tokens, 110);
  balancer_->OnAccepted(&share);
  EXPECT_EQ(Look().waiting_tokens, 110);
  Report(2);
  EXPECT_EQ(Look().waiting_tokens, 10);
  balancer_->OnEnd(share);
  EXPECT_EQ(Look().waiting_tokens, 10);
}

TEST_F(BalancerTest, WhatEndsBeforeAReportCountsNoMore) {
  Report(2);
  Balancer::Share refused = Pick();
  balancer_->OnEnd(refused);
  Balancer::Share quick = Pick();
  balancer_->OnAccepted(&quick);
  balancer_->OnEnd(quick);
  EXPECT_EQ(Look().waiting_tokens, 10);
  EXPECT_EQ(Look().sequences, 1);
}

TEST_F(BalancerTest, AFirstTokenSaysThatNothingWaitsThatWasSentBefore) {
  Report(2);
  Balancer::Share first = Pick();
  Balancer::Share second = Pick();
  Balancer::Share third = Pick();
  balancer_->OnAccepted(&second);
  balancer_->OnToken(&second, now_);
  EXPECT_EQ(Look().waiting_tokens, 100);
  balancer_->OnEnd(second);
  EXPECT_EQ(Look().waiting_tokens, 100);
  balancer_->OnEnd(third);
  EXPECT_EQ(Look().waiting_tokens, 0);
  balancer_->OnEnd(first);
  EXPECT_EQ(Look().waiting_tokens, 0);
}

TEST_F(BalancerTest, AGroupThatIsNewOwesNothingOfItsPast) {
  Report(2);
  Balancer::Share share = Pick();
  balancer_->OnAccepted(&share);
  balancer_->OnNewGroup(2, 1000);
  EXPECT_EQ(Look().waiting_tokens, 0);
  balancer_->OnEnd(share);
  EXPECT_EQ(Look().waiting_tokens, 0);
}

TEST_F(BalancerTest, AGroupThatFailsIsLeftOutUnlessItIsAllThereIs) {
  Fail(2, 5);
  EXPECT_EQ(balancer_->num_open(), 1);
  EXPECT_EQ(Offered(), "1");
  Fail(1, 5);
  EXPECT_EQ(Offered(), "12");
  balancer_->OnNewGroup(2, 1000);
  EXPECT_EQ(Offered(), "2");
}

TEST_F(BalancerTest, OneProbeAtATimeAndATokenCloses) {
  Fail(2, 5);
  now_ += absl::Seconds(10);
  Balancer::Share probe = Pick();
  EXPECT_EQ(probe.group, 2);
  EXPECT_EQ(Offered(), "1");
  balancer_->OnEnd(probe);  // its client hung up
  EXPECT_EQ(Offered(), "12");
  probe = Pick();
  balancer_->OnToken(&probe, now_);
  EXPECT_EQ(Offered(), "12");
  EXPECT_EQ(balancer_->num_open(), 0);
}

TEST_F(BalancerTest, AGroupThatSaysNothingIsLeftOutUnlessAllAreSilent) {
  Report(1);
  Report(2);
  now_ += absl::Seconds(2);
  Report(1);
  now_ += absl::Seconds(1);
  EXPECT_EQ(Offered(), "1");
  now_ += absl::Seconds(2);
  EXPECT_EQ(Offered(), "12");
}

TEST_F(BalancerTest, ThePolicyIsToldWhoIsNewAndWhoIsGone) {
  EXPECT_EQ(policy_->news,
            (std::vector<std::pair<GroupId, int64_t>>{{1, 1000}, {2, 1000}}));
  Balancer::Share share = Pick();
  balancer_->RemoveGroup(2);
  EXPECT_EQ(policy_->gone, std::vector<GroupId>{2});
  balancer_->OnAccepted(&share);  // of one that is gone
  balancer_->OnToken(&share, now_);
  balancer_->OnFailure(&share, now_);
  balancer_->OnEnd(share);
}

}  // namespace
}  // namespace lockstep
