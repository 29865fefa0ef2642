#pragma once

#include <cstdint>

namespace lockstep::kernels {

// How matrix products are computed. Either way a result is a function of its
// own row and of the weights alone, the same on every instruction set; the two
// modes give different bits, so all ranks of a group, and all groups that may
// take over from each other, use the same.
enum class Arithmetic : uint8_t {
  // Weights as stored, activations in fp32.
  kStrict,
  // Activations as 14-bit integers in blocks of 32 that share a scale; plain
  // weights too.
  kFast,
};

// "strict", "fast": what --arithmetic says.
inline constexpr const char* ArithmeticName(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kStrict ? "strict" : "fast";
}

}  // namespace lockstep::kernels
