#include "tests/integration/shrink_schedule.h"

#include <utility>
#include <vector>

namespace lockstep::testing {
namespace {

using Change = std::function<void(Schedule&)>;

// Each makes a choice as plain as it can be.
const std::vector<Change>& Simplifications() {
  static const auto* const kSimplifications = new std::vector<Change>{
      [](Schedule& s) { s.num_ranks = 1, s.seen_rank = 0; },
      [](Schedule& s) { s.seen_rank = 0; },
      [](Schedule& s) { s.num_threads = 1; },
      [](Schedule& s) { s.isa = "reference"; },
      [](Schedule& s) { s.num_resumed = 0; },
      [](Schedule& s) { s.arrives = 0; },
      [](Schedule& s) { s.limits.num_pages *= 16; },
      [](Schedule& s) { s.limits.max_step_tokens = 4096; },
  };
  return *kSimplifications;
}

}  // namespace

Schedule Shrink(Schedule schedule,
                const std::function<bool(const Schedule&)>& fails) {
  const auto try_change = [&](const Change& change) {
    Schedule changed = schedule;
    change(changed);
    const bool still_fails = fails(changed);
    if (still_fails) schedule = std::move(changed);
    return still_fails;
  };
  // From the last on down, so that those not tried yet keep their places. One
  // that goes may let another go.
  for (bool went = true; went;) {
    went = false;
    for (size_t i = schedule.mates.size(); i-- > 0;) {
      went |= try_change([i](Schedule& s) {
        s.mates.erase(s.mates.begin() + static_cast<ptrdiff_t>(i));
      });
    }
  }
  for (const Change& simplification : Simplifications()) {
    try_change(simplification);
  }
  return schedule;
}

}  // namespace lockstep::testing
