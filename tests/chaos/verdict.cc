#include "tests/chaos/verdict.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <string>
#include <vector>

namespace lockstep::testing {
namespace {

// The ranks in the lines "… rank 2 failed first: …".
std::vector<int> NamedIn(const std::string& output) {
  std::vector<int> named;
  constexpr char kVerdict[] = " failed first";
  for (size_t at = output.find(kVerdict); at != output.npos;
       at = output.find(kVerdict, at + 1)) {
    const size_t begin = output.rfind(' ', at - 1) + 1;
    int rank = -1;
    if (absl::SimpleAtoi(output.substr(begin, at - begin), &rank)) {
      named.push_back(rank);
    }
  }
  return named;
}

// From behind a broken link it looks as if the leader had gone.
bool MayBeWrong(const Round& round, int rank) {
  return rank == round.victim && (round.fault == GroupFault::kCut ||
                                  round.fault == GroupFault::kSilence);
}

// There is no group yet; whoever waits for it says for whom.
absl::Status CheckFormingVerdict(const Round& round, const Ranks& ranks) {
  const bool is_leader = round.victim == 0;
  const int witness = !is_leader ? 0 : MissingRank(round) == 1 ? 2 : 1;
  const std::string name =
      is_leader ? "the leader" : absl::StrCat("rank ", round.victim, " ");
  const std::string output = ranks.rank(witness).output();
  const size_t last = output.rfind("worker: ");
  if (last != output.npos && output.find(name, last) != output.npos) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("the last words of rank ", witness,
                                          " do not name ", name, "."));
}

}  // namespace

int MissingRank(const Round& round) {
  const int last = round.size - 1;
  return round.victim == last ? last - 1 : last;
}

absl::Status CheckVerdict(const Round& round, const Ranks& ranks) {
  if (round.state == GroupState::kForming && round.fault != GroupFault::kStop) {
    return CheckFormingVerdict(round, ranks);
  }
  int verdicts = 0;
  for (int rank = 0; rank < round.size; ++rank) {
    if (MayBeWrong(round, rank)) continue;
    for (const int named : NamedIn(ranks.rank(rank).output())) {
      ++verdicts;
      if (named == round.victim) continue;
      return absl::InternalError(
          absl::StrCat("rank ", rank, "'s verdict names rank ", named, "."));
    }
  }
  if (verdicts > 0) return absl::OkStatus();
  return CheckFormingVerdict(round, ranks);
}

}  // namespace lockstep::testing
