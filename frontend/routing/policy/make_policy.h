#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <memory>

#include "frontend/routing/policy/routing_policy.h"

namespace lockstep {

// By the name that --routing_policy has it by: round_robin, least_load,
// prefix_hash or prefix_affinity; INVALID_ARGUMENT lists them. Any thread.
absl::StatusOr<std::unique_ptr<RoutingPolicy>> MakeRoutingPolicy(
    absl::string_view name);

}  // namespace lockstep
