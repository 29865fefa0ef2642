#include "frontend/routing/policy/round_robin.h"

#include <algorithm>

namespace lockstep {

Route RoundRobin::Pick(const RouteRequest& request,
                       absl::Span<const GroupView> groups) {
  const auto next =
      std::find_if(groups.begin(), groups.end(),
                   [this](const GroupView& group) { return group.id > last_; });
  const size_t index = next == groups.end() ? 0 : next - groups.begin();
  last_ = groups[index].id;
  return {index, request.num_tokens()};
}

}  // namespace lockstep
