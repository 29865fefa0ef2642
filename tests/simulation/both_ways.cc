#include "tests/simulation/both_ways.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdint>

#include "common/status_macros.h"
#include "tests/simulation/checking_sink.h"
#include "tests/simulation/simulated_rank.h"
#include "tests/simulation/simulated_sources.h"
#include "tests/simulation/totals.h"

namespace lockstep::testing {
namespace {

using Choice = CheckingSink::Choice;

struct Run {
  CheckingSink sink;
  RankOutcome outcome;
};

void RunLeader(const Scenario& scenario, Run* run) {
  ScriptedSource source(scenario, ListenerOf(&run->sink));
  run->outcome = RunRank(scenario, 0, &source, &run->sink);
}

bool IsPartly(const Choice& choice, bool ends_early) {
  return choice.reason == v1::ABORTED || (ends_early && !choice.ended());
}

// `partly`: one of them need not have come to its end.
bool IsSame(const Choice& a, const Choice& b, bool partly) {
  if (!partly) return a.tokens == b.tokens && a.reason == b.reason;
  const size_t size = std::min(a.tokens.size(), b.tokens.size());
  return std::equal(a.tokens.begin(), a.tokens.begin() + size,
                    b.tokens.begin());
}

// A request that only one of them has heard of came after a failure.
absl::Status CheckSame(const CheckingSink& alone,
                       const CheckingSink& overlapped, bool ends_early) {
  for (const auto& [number, request] : overlapped.requests()) {
    const auto& expected = alone.requests().at(number).choices;
    for (size_t i = 0; i < expected.size(); ++i) {
      const bool partly = IsPartly(expected[i], ends_early) ||
                          IsPartly(request.choices[i], ends_early);
      if (IsSame(expected[i], request.choices[i], partly)) continue;
      return absl::InternalError(absl::StrCat(
          "request ", number, ", choice ", i,
          " got other tokens, or another end, with two steps in flight."));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SimulateBothWays(const Scenario& scenario, Totals* totals) {
  Scenario plain = scenario;
  plain.mutable_limits()->set_steps_in_flight(1);
  plain.clear_fault();
  Run alone;
  RunLeader(plain, &alone);
  LOCKSTEP_RETURN_IF_ERROR(alone.outcome.status);
  if (!HasStop(scenario)) {
    LOCKSTEP_RETURN_IF_ERROR(alone.sink.CheckAllEnded(
        scenario.limits().max_context(), kVocabularySize));
  }
  Run overlapped;
  RunLeader(scenario, &overlapped);
  const absl::Status& end = overlapped.outcome.status;
  const bool has_failed = scenario.fault().kind() == Fault::FAILING_CALL &&
                          absl::StrContains(end.message(), "at call ");
  if (!has_failed) LOCKSTEP_RETURN_IF_ERROR(end);
  LOCKSTEP_RETURN_IF_ERROR(
      CheckSame(alone.sink, overlapped.sink, has_failed || HasStop(scenario)));
  AddTotals(overlapped.sink.totals(), totals);
  totals->set_scenarios(totals->scenarios() + 1);
  totals->set_faults(totals->faults() + (has_failed ? 1 : 0));
  totals->set_rank_steps(totals->rank_steps() + overlapped.outcome.num_steps);
  totals->set_preemptions(totals->preemptions() +
                          overlapped.outcome.preemptions);
  totals->set_overlapped(totals->overlapped() +
                         overlapped.outcome.num_overlapped);
  return absl::OkStatus();
}

}  // namespace lockstep::testing
