#pragma once

#include "frontend/routing/policy/routing_policy.h"

namespace lockstep {

// Prompts that begin alike go to the same group: the one that comes first by a
// hash of the beginning and the group (rendezvous hashing, Thaler and
// Ravishankar 1998), unless it has a quarter more sequences than the average;
// then the next one. Remembers nothing, so any number of gateways agree.
class PrefixHash : public RoutingPolicy {
 public:
  Route Pick(const RouteRequest& request,
             absl::Span<const GroupView> groups) override;
};

}  // namespace lockstep
