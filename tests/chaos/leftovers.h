#pragma once

#include <absl/status/status.h>

#include <set>
#include <string>

#include "tests/chaos/ranks.h"

namespace lockstep::testing {

// What a group may not leave behind: processes, ports and shared memory.
//
//   Leftovers leftovers;     // before the group
//   …its life, to the end…
//   LOCKSTEP_RETURN_IF_ERROR(leftovers.Check(ranks));
class Leftovers {
 public:
  Leftovers();

  // The sentence names the first thing that `ranks`, which have all been waited
  // for, left.
  absl::Status Check(const Ranks& ranks) const;

 private:
  const std::set<std::string> segments_;  // that were there before
};

}  // namespace lockstep::testing
