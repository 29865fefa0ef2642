#pragma once

#include <absl/status/status.h>

#include "tests/chaos/ranks.h"
#include "tests/chaos/round.h"

namespace lockstep::testing {

// Whether the ranks of a group that is gone say in their logs that the round's
// victim failed first, and no other. The sentence says who names whom.
absl::Status CheckVerdict(const Round& round, const Ranks& ranks);

// The rank that the group waits for in a round that begins while it forms.
int MissingRank(const Round& round);

}  // namespace lockstep::testing
