#pragma once

#include <absl/status/status.h>

#include <cstdint>

namespace lockstep {

// What a rank can not do without.
struct RankMemory {
  int64_t weight_bytes = 0;   // packed
  int64_t kv_bytes = 0;       // of the pages that flags ask for
  int64_t working_bytes = 0;  // see ModelEngine::WorkingBytes
};

// Whether the ranks of this host, which share `usable_bytes` evenly, have what
// each needs. RESOURCE_EXHAUSTED with the sizes where they do not: found before
// anything is allocated, since a process that takes more ends without a word.
absl::Status CheckRankMemory(int64_t usable_bytes, int local_ranks,
                             const RankMemory& need);

}  // namespace lockstep
