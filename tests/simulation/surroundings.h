#pragma once

#include <cstdint>

namespace lockstep::testing {

// What differs between processes and must not reach a plan. While one of these
// lives, in its thread, memory is allocated at places, and clocks show times,
// that depend on the seed. Clocks are years apart, and jump. Blocks grow by a
// random padding, so that two objects lie in another order and hash to other
// places than in another rank; decoys come and go between them.
//
//   Surroundings surroundings(seed);
//   …all that a rank does, its construction too…
//
// A program that links this has its operator new and clock_gettime. One at a
// time in a thread.
class Surroundings {
 public:
  explicit Surroundings(uint64_t seed);
  ~Surroundings();
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;
};

}  // namespace lockstep::testing
