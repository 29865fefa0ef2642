#pragma once

#include <cstdint>

#include "kernels/cuda/device.h"

namespace lockstep::cuda {

// Sums of weights that are at most 1, as integers: exact, so no order of
// additions shows in them. A unit is 2^-80, and there are at most 2^27 weights.
__extension__ typedef unsigned __int128 ProbabilityMass;

// `weight` to a unit; what is not zero does not become so.
__device__ inline ProbabilityMass MassOf(float weight) {
  constexpr int kUnitExponent = 127 + 23 - 80;  // of a float that counts units
  const uint32_t bits = __float_as_uint(weight);
  if (bits == 0) return 0;
  const uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
  const int shift = static_cast<int>(bits >> 23) - kUnitExponent;
  if (shift >= 0) return ProbabilityMass{mantissa} << shift;
  const uint32_t units = shift > -24 ? mantissa >> -shift : 0;
  return units == 0 ? 1 : units;
}

// share · mass, rounded down or up, for a share in [0, 1) that is rounded up to
// a multiple of 2^-53.
struct MassShare {
  ProbabilityMass down, up;
};
__device__ inline MassShare ShareOf(ProbabilityMass mass, double share) {
  constexpr int kBits = 53;
  const double scaled = share * 0x1p53;
  auto parts = static_cast<uint64_t>(scaled);
  if (static_cast<double>(parts) < scaled) ++parts;
  const ProbabilityMass high = (mass >> 64) * parts;
  const ProbabilityMass low =
      ProbabilityMass{static_cast<uint64_t>(mass)} * parts;
  const ProbabilityMass down = (high << (64 - kBits)) + (low >> kBits);
  const bool is_rounded = (low & ((ProbabilityMass{1} << kBits) - 1)) != 0;
  return {down, down + (is_rounded ? 1 : 0)};
}

}  // namespace lockstep::cuda
