#pragma once

#include <unordered_map>

#include "frontend/routing/policy/prefix_index.h"
#include "frontend/routing/policy/routing_policy.h"

namespace lockstep {

// The group that has the request's first token soonest: the least sum of the
// tokens it has yet to compute of this prompt and what its load costs
// (LoadCost). So a cached prefix draws a request only as far as it saves work,
// and no group becomes hot. What groups have cached is guessed from what they
// were sent (PrefixIndex).
class PrefixAffinity : public RoutingPolicy {
 public:
  Route Pick(const RouteRequest& request,
             absl::Span<const GroupView> groups) override;
  void OnNewGroup(GroupId id, int64_t kv_capacity_tokens) override;
  void OnGroupGone(GroupId id) override;

 private:
  int64_t CachedTokens(GroupId id, absl::Span<const uint64_t> chain) const;

  std::unordered_map<GroupId, PrefixIndex> indexes_;
  GroupId last_ = 0;
};

}  // namespace lockstep
