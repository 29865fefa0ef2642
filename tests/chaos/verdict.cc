#include "tests/chaos/verdict.h"

#include <absl/algorithm/container.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/string_view.h>

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

// From behind a broken link it looks as if the leader had gone; and to a rank
// that was stopped, when it goes on, as if its connection had broken.
bool MayBeWrong(const Round& round, int rank) {
  return rank == round.victim && (round.fault == GroupFault::kCut ||
                                  round.fault == GroupFault::kSilence ||
                                  round.fault == GroupFault::kStop);
}

// "rank 2, 3 did not join …", or the rank alone.
bool NamesMissing(absl::string_view words, int rank) {
  if (absl::StrContains(words, absl::StrCat("rank ", rank, " "))) return true;
  const size_t end = words.find(" did not join");
  const size_t begin = words.find("rank ");
  if (end == words.npos || begin > end) return false;
  const std::vector<std::string> ranks =
      absl::StrSplit(words.substr(begin + 5, end - begin - 5), ", ");
  return absl::c_linear_search(ranks, absl::StrCat(rank));
}

// There is no group yet; whoever waits for it says for whom.
absl::Status CheckFormingVerdict(const Round& round, const Ranks& ranks) {
  const bool is_leader = round.victim == 0;
  // One with an output of its own, and not the last, which is missing.
  const int witness = is_leader ? round.size - 2 : 0;
  const std::string output = ranks.rank(witness).output();
  const size_t last = output.rfind("worker: ");
  const absl::string_view words =
      last == output.npos ? "" : absl::string_view(output).substr(last);
  const bool is_named = is_leader ? absl::StrContains(words, "the leader")
                                  : NamesMissing(words, round.victim);
  if (is_named) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the last words of rank ", witness,
                                          " do not name rank ", round.victim,
                                          "."));
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
  // Of the ranks that a stopped one keeps from it, none has a verdict.
  bool has_formed = round.state != GroupState::kForming;
  for (int rank = 0; rank < round.size; ++rank) {
    if (MayBeWrong(round, rank) || ranks.is_child(rank)) continue;
    const std::vector<int> named = NamedIn(ranks.rank(rank).output());
    has_formed |= !named.empty();
    if (has_formed && named.empty() && rank != round.victim) {
      return absl::InternalError(
          absl::StrCat("rank ", rank, " left without a verdict."));
    }
    // What the leader's child writes is there, too.
    const bool has_others = rank == 0 && ranks.is_child(round.victim) &&
                            MayBeWrong(round, round.victim) &&
                            absl::c_linear_search(named, round.victim);
    for (const int other : named) {
      if (other == round.victim || has_others) continue;
      return absl::InternalError(
          absl::StrCat("rank ", rank, "'s verdict names rank ", other, "."));
    }
  }
  return has_formed ? absl::OkStatus() : CheckFormingVerdict(round, ranks);
}

}  // namespace lockstep::testing
