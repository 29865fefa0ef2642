#pragma once

#include <absl/status/status.h>

#include <string>

#include "tests/chaos/round.h"

namespace lockstep::testing {

// What rounds are played with.
struct Arena {
  std::string worker;  // the binary
  std::string model;   // a file; its context holds kArenaContext tokens
};

inline constexpr int kArenaContext = 60'000;

// Brings a group of processes into the round's state, does to it what the round
// says, and checks what must hold whatever happens:
//
//  - every client gets exactly one terminal event;
//  - what a rank's end or a broken link leaves is nothing: within the time that
//    it takes to be noticed and 5 s, every process has left, with a code other
//    than 0, and the verdict names the victim;
//  - what must not disturb a group does not: its clients get their answers, and
//    it drains with code 0;
//  - no process, port or segment is left.
//
// The sentence of an error says which did not, and has the ranks' output.
absl::Status PlayRound(const Round& round, const Arena& arena);

// Whether rounds with a full /dev/shm can be played: that takes a mount
// namespace, so mostly root.
bool CanFillShm();

}  // namespace lockstep::testing
