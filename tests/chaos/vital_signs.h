#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/chaos/ranks.h"

namespace lockstep::testing {

// What a group that serves nobody holds: memory and descriptors of its ranks,
// pages and requests of its scheduler.
struct VitalSigns {
  struct OfRank {
    int64_t resident_bytes = 0;
    int open_files = 0;
    int threads = 0;
  };

  std::vector<OfRank> ranks;
  uint32_t held_pages = 0;  // neither free nor cached
  uint32_t running_sequences = 0;
  uint32_t waiting_sequences = 0;

  std::string ToString() const;
};

// Waits until the group is idle, and looks. DEADLINE_EXCEEDED when sequences
// or pages are still held after a while, with their numbers.
absl::StatusOr<VitalSigns> ReadVitalSigns(const Ranks& ranks);

// Whether nothing has grown from `before` to `after`: no descriptor, no more
// threads than gRPC keeps ready, no more memory than an allocator may keep.
absl::Status CheckNothingGrew(const VitalSigns& before,
                              const VitalSigns& after);

}  // namespace lockstep::testing
