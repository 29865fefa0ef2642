#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::testing {

// What a group is doing when something happens to it.
enum class GroupState { kForming, kLoading, kIdle, kPrefill, kDecode, kDrain };

// What happens to one of its ranks, or to the link between it and the leader.
enum class GroupFault {
  kKill,       // SIGKILL
  kStop,       // SIGSTOP
  kTerminate,  // SIGTERM
  kRefused,    // it is told an address at which nobody listens
  kCut,        // its connection to the leader breaks
  kSilence,    // and passes nothing on any more
  kFlipBit,    // one bit of what the leader sends it
  kDouble,     // what the leader sends comes twice
  kDrop,       // or not at all
  kNoShm,      // /dev/shm is full, for all ranks
};

// One round of chaos.
struct Round {
  int number = 0;
  uint64_t seed = 0;  // of all that is drawn while it is played
  GroupState state = GroupState::kIdle;
  GroupFault fault = GroupFault::kKill;
  int size = 2;    // ranks
  int victim = 0;  // the rank it happens to
  // How the ranks exchange tensors: over TCP, or else shared memory.
  bool has_gloo = false;
  // Rank 1 is the leader's child, as on a host of several ranks; all others are
  // started apart.
  bool has_child = false;

  // "round 7: 4 ranks over gloo, SIGKILL of rank 2 in prefill"
  std::string ToString() const;
};

// Rounds 1 to `count`, a function of the seed: first each fault in each state
// that it can happen in, in random order, then these again in another.
std::vector<Round> DrawRounds(int count, uint64_t seed);

}  // namespace lockstep::testing
