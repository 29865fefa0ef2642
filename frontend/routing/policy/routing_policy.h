#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>

namespace lockstep {

// A worker group of this gateway; never used again for another.
using GroupId = uint64_t;

// What a policy is told of a group that may take a request.
struct GroupView {
  GroupId id = 0;
  // Of its address: the same at every gateway.
  uint64_t key = 0;
  // Prompt tokens that wait to be computed there, those just sent included.
  int64_t waiting_tokens = 0;
  // Running or waiting, those just sent included.
  int64_t sequences = 0;
  // The part of its pages that sequences hold, 0 to 1.
  double kv_usage = 0;
};

struct RouteRequest {
  absl::Span<const uint32_t> prompt_token_ids;
  // Output that it brings along and that is computed like a prompt.
  int64_t resumed_tokens = 0;

  int64_t num_tokens() const {
    return static_cast<int64_t>(prompt_token_ids.size()) + resumed_tokens;
  }
};

struct Route {
  size_t index = 0;  // of the group, among those that were offered
  // Of the request's, those that the group has yet to compute, it is thought.
  int64_t tokens = 0;
};

// Chooses a group for each request. Knows no clock, no thread and no random
// number: the same calls give the same choices. One call at a time.
class RoutingPolicy {
 public:
  virtual ~RoutingPolicy() = default;

  // REQUIRES: there is a group; they are in order of id.
  virtual Route Pick(const RouteRequest& request,
                     absl::Span<const GroupView> groups) = 0;

  // `id` has this room for keys and values; what it had cached is gone. Before
  // its first pick, and whenever its processes are new.
  virtual void OnNewGroup(GroupId /*id*/, int64_t /*kv_capacity_tokens*/) {}
  virtual void OnGroupGone(GroupId /*id*/) {}
};

}  // namespace lockstep
