#pragma once

#include <absl/status/statusor.h>

#include <cstdint>

namespace lockstep {

// Where the memory of a device goes.
struct DeviceBudget {
  int64_t free_bytes = 0;  // before anything is allocated
  int64_t total_bytes = 0;
  double utilization = 0.9;  // the share of all of it that may be in use
  int64_t weight_bytes = 0;
  int64_t workspace_bytes = 0;  // activations, attention's partials, staging
  int64_t graph_bytes = 0;      // of captured steps
};

// What is left for KV pages: all that may be in use, less what others use and
// what this rank needs besides. A group takes the least of its ranks.
// RESOURCE_EXHAUSTED lists the sizes where nothing is left.
absl::StatusOr<int64_t> BytesForKvPages(const DeviceBudget& budget);

}  // namespace lockstep
