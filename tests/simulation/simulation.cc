#include "tests/simulation/simulation.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "tests/simulation/checking_sink.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/simulated_rank.h"
#include "tests/simulation/simulated_sources.h"
#include "tests/simulation/totals.h"
#include "tests/simulation/wire.h"

namespace lockstep::testing {
namespace {

struct Rank {
  CheckingSink sink;
  RankOutcome outcome;
};

template <typename... Parts>
absl::Status Broken(uint32_t rank, const Parts&... parts) {
  return absl::InternalError(absl::StrCat("rank ", rank, ": ", parts...));
}

// Steps that both executed.
bool ExecutesAsLeader(const RankOutcome& leader, const RankOutcome& follower) {
  return follower.executed.size() <= leader.executed.size() &&
         std::equal(follower.executed.begin(), follower.executed.end(),
                    leader.executed.begin());
}

absl::Status CheckSame(const Rank& leader, uint32_t rank,
                       const Rank& follower) {
  if (!follower.outcome.status.ok()) {
    return Broken(rank, follower.outcome.status.message());
  }
  if (follower.outcome.executed != leader.outcome.executed) {
    return Broken(rank, "it executes other plans than the leader, unnoticed.");
  }
  const auto same = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.choices == b.second.choices;
  };
  const auto& requests = follower.sink.requests();
  const auto& expected = leader.sink.requests();
  if (!std::equal(requests.begin(), requests.end(), expected.begin(),
                  expected.end(), same)) {
    return Broken(rank, "it tells other tokens than the leader.");
  }
  return absl::OkStatus();
}

// `first_step` of the wire that this rank read otherwise; 0: of none. A step
// may be executed when `steps_ahead` before it are not committed.
absl::Status CheckFound(uint64_t first_step, int steps_ahead,
                        const Rank& leader, uint32_t rank, const Rank& follower,
                        Totals* totals) {
  const RankOutcome& outcome = follower.outcome;
  if (!ExecutesAsLeader(leader.outcome, outcome)) {
    return Broken(rank, "it executes step ", outcome.executed.back().step,
                  " otherwise than the leader.");
  }
  const uint64_t last =
      outcome.executed.empty() ? 0 : outcome.executed.back().step;
  // A step's ids are compared once it is committed.
  const uint64_t limit = first_step != 0 ? first_step - 1
                         : outcome.tampered_step != 0
                             ? outcome.tampered_step + steps_ahead
                             : UINT64_MAX;
  const bool must_be_found = limit != UINT64_MAX;
  const bool is_found = !outcome.status.ok();
  if (must_be_found || is_found) totals->set_faults(totals->faults() + 1);
  if (must_be_found && !is_found) {
    return Broken(rank, "it does not notice its fault after step ", limit, ".");
  }
  if (last <= limit) return absl::OkStatus();
  return Broken(rank, "it executes step ", last,
                " although its fault is of step ", limit + 1, ".");
}

}  // namespace

absl::Status Simulate(const Scenario& scenario, Totals* totals) {
  Rank leader;
  ScriptedSource script(scenario, ListenerOf(&leader.sink));
  leader.outcome = RunRank(scenario, 0, &script, &leader.sink);
  if (!leader.outcome.status.ok()) {
    return Broken(0, leader.outcome.status.message());
  }
  if (!HasStop(scenario)) {
    const absl::Status ended = leader.sink.CheckAllEnded(
        scenario.limits().max_context(), kVocabularySize);
    if (!ended.ok()) return Broken(0, ended.message());
  }
  uint64_t rank_steps = leader.outcome.num_steps;
  const Fault& fault = scenario.fault();
  const int steps_ahead = std::max(1, scenario.limits().steps_in_flight()) - 1;
  const std::string wire = ToWire(script.sent());
  for (uint32_t rank = 1; rank < scenario.num_ranks(); ++rank) {
    const bool is_faulty = fault.kind() != Fault::NONE && fault.rank() == rank;
    FaultyWire read = {wire, 0};
    if (is_faulty && IsOfTheWire(fault.kind())) {
      read = InjectFault(fault, script.sent());
    }
    Rank follower;
    WireSource source(std::move(read.bytes), scenario.seed() + rank,
                      ListenerOf(&follower.sink));
    follower.outcome = RunRank(scenario, rank, &source, &follower.sink);
    rank_steps += follower.outcome.num_steps;
    LOCKSTEP_RETURN_IF_ERROR(is_faulty
                                 ? CheckFound(read.first_step, steps_ahead,
                                              leader, rank, follower, totals)
                                 : CheckSame(leader, rank, follower));
  }
  AddTotals(leader.sink.totals(), totals);
  totals->set_scenarios(totals->scenarios() + 1);
  totals->set_rank_steps(totals->rank_steps() + rank_steps);
  totals->set_preemptions(totals->preemptions() + leader.outcome.preemptions);
  totals->set_overlapped(totals->overlapped() + leader.outcome.num_overlapped);
  return absl::OkStatus();
}

}  // namespace lockstep::testing
