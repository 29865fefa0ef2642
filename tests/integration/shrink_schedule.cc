#include "tests/integration/shrink_schedule.h"

#include <utility>

#include "tests/testing/shrink.h"

namespace lockstep::testing {

Schedule Shrink(Schedule schedule,
                const std::function<bool(const Schedule&)>& fails) {
  const ShrinkSteps<Schedule> steps = {
      .size = [](const Schedule& s) { return s.mates.size(); },
      .erase =
          [](Schedule& s, size_t begin, size_t end) {
            s.mates.erase(s.mates.begin() + static_cast<ptrdiff_t>(begin),
                          s.mates.begin() + static_cast<ptrdiff_t>(end));
          },
      .simplifications =
          {
              [](Schedule& s) { s.num_ranks = 1, s.seen_rank = 0; },
              [](Schedule& s) { s.seen_rank = 0; },
              [](Schedule& s) { s.num_threads = 1; },
              [](Schedule& s) { s.isa = "reference"; },
              [](Schedule& s) { s.num_resumed = 0; },
              [](Schedule& s) { s.arrives = 0; },
              [](Schedule& s) { s.limits.num_pages *= 16; },
              [](Schedule& s) { s.limits.max_step_tokens = 4096; },
          }};
  return Shrink<Schedule>(std::move(schedule), steps, fails);
}

}  // namespace lockstep::testing
