#include "tests/chaos/round.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <iterator>
#include <random>

namespace lockstep::testing {
namespace {

constexpr GroupState kStates[] = {GroupState::kForming, GroupState::kLoading,
                                  GroupState::kIdle,    GroupState::kPrefill,
                                  GroupState::kDecode,  GroupState::kDrain};
constexpr const char* kStateNames[] = {"while the group forms",
                                       "while weights load",
                                       "in idleness",
                                       "in prefill",
                                       "in decode",
                                       "in a drain"};

constexpr GroupFault kFaults[] = {GroupFault::kKill,      GroupFault::kStop,
                                  GroupFault::kTerminate, GroupFault::kRefused,
                                  GroupFault::kCut,       GroupFault::kSilence,
                                  GroupFault::kFlipBit,   GroupFault::kDouble,
                                  GroupFault::kDrop,      GroupFault::kNoShm};
constexpr const char* kFaultNames[] = {
    "SIGKILL of",         "SIGSTOP of",          "SIGTERM to",
    "a refusal to",       "a cut link to",       "a silent link to",
    "a bit flipped to",   "bytes sent twice to", "bytes lost to",
    "a full /dev/shm for"};

bool IsOfLink(GroupFault fault) {
  return fault == GroupFault::kCut || fault == GroupFault::kSilence ||
         fault == GroupFault::kFlipBit || fault == GroupFault::kDouble ||
         fault == GroupFault::kDrop;
}

bool CanHappen(GroupFault fault, GroupState state) {
  const bool steps =
      state == GroupState::kPrefill || state == GroupState::kDecode;
  switch (fault) {
    case GroupFault::kRefused:
      return state == GroupState::kForming;
    case GroupFault::kFlipBit:
    case GroupFault::kDouble:
    case GroupFault::kDrop:
      return steps;  // where frames follow each other
    case GroupFault::kCut:
    case GroupFault::kSilence:
      return steps || state == GroupState::kIdle;
    case GroupFault::kNoShm:
      return state == GroupState::kDecode;
    default:
      return true;
  }
}

}  // namespace

std::string Round::ToString() const {
  return absl::StrCat("round ", number, ": ", size, " ranks",
                      has_gloo ? " over gloo" : "",
                      has_child ? ", one the leader's child, " : ", ",
                      kFaultNames[static_cast<int>(fault)], " rank ", victim,
                      " ", kStateNames[static_cast<int>(state)]);
}

std::vector<Round> DrawRounds(int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Round> all;
  for (const GroupFault fault : kFaults) {
    for (const GroupState state : kStates) {
      if (CanHappen(fault, state))
        all.push_back({.state = state, .fault = fault});
    }
  }
  std::vector<Round> rounds;
  while (rounds.size() < static_cast<size_t>(count)) {
    std::shuffle(all.begin(), all.end(), random);
    for (Round round : all) {
      round.number = static_cast<int>(rounds.size()) + 1;
      round.seed = random();
      // A group can only wait for a rank that is not the victim.
      const bool is_small =
          round.state != GroupState::kForming && random() % 2 == 0;
      round.size = is_small ? 2 : 4;
      // What happens to a link happens to the follower at its end.
      const bool followers_only =
          IsOfLink(round.fault) || round.fault == GroupFault::kRefused;
      const int first = followers_only ? 1 : 0;
      round.victim = first + static_cast<int>(random() % (round.size - first));
      round.has_gloo = round.seed % 2 == 0;
      // Nothing can be between the leader and its child.
      round.has_child =
          round.seed / 2 % 2 == 0 && !(followers_only && round.victim == 1);
      rounds.push_back(round);
    }
  }
  rounds.resize(count);
  return rounds;
}

}  // namespace lockstep::testing
