#pragma once

#include <cstdint>

namespace lockstep::testing {

// How much more memory than now this process has taken at most, since this was
// made: of resident pages, so what was never touched does not count.
//
//   const PeakMemory peak;
//   …
//   EXPECT_LE(peak.GrownBytes(), 1 << 20);
//
// One at a time: Linux keeps one such mark for a process.
class PeakMemory {
 public:
  PeakMemory();

  int64_t GrownBytes() const;

 private:
  int64_t before_;
};

}  // namespace lockstep::testing
