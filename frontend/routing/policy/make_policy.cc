#include "frontend/routing/policy/make_policy.h"

#include <absl/strings/str_cat.h>

#include "frontend/routing/policy/least_load.h"
#include "frontend/routing/policy/prefix_affinity.h"
#include "frontend/routing/policy/prefix_hash.h"
#include "frontend/routing/policy/round_robin.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<RoutingPolicy>> MakeRoutingPolicy(
    absl::string_view name) {
  if (name == "round_robin") return std::make_unique<RoundRobin>();
  if (name == "least_load") return std::make_unique<LeastLoad>();
  if (name == "prefix_hash") return std::make_unique<PrefixHash>();
  if (name == "prefix_affinity") return std::make_unique<PrefixAffinity>();
  return absl::InvalidArgumentError(
      absl::StrCat("--routing_policy is \"", name,
                   "\"; it must be round_robin, least_load, prefix_hash or "
                   "prefix_affinity."));
}

}  // namespace lockstep
