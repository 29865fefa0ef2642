#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulation/scenario.pb.h"
#include "tests/simulation/wire.h"

namespace lockstep::testing {

// What a follower reads in place of what the leader sent.
struct FaultyWire {
  std::string bytes;
  // The first step of which a byte differs, arrives late or not at all; 0 if
  // none does.
  uint64_t first_step = 0;
};

// REQUIRES: the fault is one of the wire, not of the rank.
FaultyWire InjectFault(const Fault& fault, const std::vector<SentStep>& sent);

bool IsOfTheWire(Fault::Kind kind);

}  // namespace lockstep::testing
