#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <vector>

#include "tests/simulation/checking_sink.h"
#include "tests/simulation/scenario.pb.h"
#include "worker/group/frame_source.h"

namespace lockstep::testing {

inline constexpr uint32_t kVocabularySize = 1000;

// One executed step of a rank.
struct ExecutedStep {
  uint64_t step = 0;
  uint64_t plan = 0;  // a hash of all of it, page tables too

  friend bool operator==(const ExecutedStep&, const ExecutedStep&) = default;
};

struct RankOutcome {
  // Of the step loop; INTERNAL where a page, a lock or a terminal event was
  // lost, or a request overtaken.
  absl::Status status;
  std::vector<ExecutedStep> executed;
  // In which Fault::OTHER_TOKEN was sampled; 0: in none.
  uint64_t tampered_step = 0;
  uint64_t num_steps = 0;
  uint64_t num_overlapped = 0;  // launched while another was in flight
  uint64_t preemptions = 0;
};

// Runs the step loop of a rank of `scenario`, with a real scheduler and a fake
// engine (with two steps in flight that of an asynchronous device), in
// surroundings of its own, until `source` ends it. After every step pages,
// locks and `sink` are looked at. The scenario's fault applies to its rank
// where it is one of the rank itself.
RankOutcome RunRank(const Scenario& scenario, uint32_t rank,
                    FrameSource* source, CheckingSink* sink);

}  // namespace lockstep::testing
