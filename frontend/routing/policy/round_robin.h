#pragma once

#include "frontend/routing/policy/routing_policy.h"

namespace lockstep {

// Each group in its turn, whatever its load.
class RoundRobin : public RoutingPolicy {
 public:
  Route Pick(const RouteRequest& request,
             absl::Span<const GroupView> groups) override;

 private:
  GroupId last_ = 0;
};

}  // namespace lockstep
