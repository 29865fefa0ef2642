#pragma once

#include "frontend/routing/policy/routing_policy.h"

namespace lockstep {

// What a group's load costs a request that comes to it, in tokens of prefill:
//   waiting_tokens + 128 · sequences + 300 · k / (1 - k),  k = kv_usage
// The first is what goes ahead of it; each sequence takes its share of every
// step; and a group whose pages run out preempts, which costs more the nearer
// it is (the 300 are 0.15 s at 2000 tokens/s).
double LoadCost(const GroupView& group);

// The group of the least cost, the longest unused one of several.
class LeastLoad : public RoutingPolicy {
 public:
  Route Pick(const RouteRequest& request,
             absl::Span<const GroupView> groups) override;

 private:
  GroupId last_ = 0;
};

}  // namespace lockstep
