#pragma once

#include <cstdint>

#include "worker/sampling/philox.h"

namespace lockstep {

// The noise of one output token: uniform in [0, 1), a function of the
// request's seed, the choice and the token's position in the output alone.
inline double SamplingNoise(uint64_t seed, uint32_t choice,
                            uint32_t output_position) {
  const auto bits = Philox4x32(
      {output_position, choice, 0, 0},
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t word = uint64_t{bits[0]} << 32 | bits[1];
  constexpr double kTwoToMinus53 = 0x1p-53;
  return static_cast<double>(word >> 11) * kTwoToMinus53;
}

}  // namespace lockstep
