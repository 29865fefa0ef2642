#pragma once

#include <cstdint>

namespace lockstep::kernels {

// What becomes of a gate before it is multiplied by `up`.
enum class Gate : uint8_t {
  kSilu,      // x / (1 + e^-x)
  kGeluTanh,  // x·(1 + tanh(√(2/π)·(x + 0.044715·x³))) / 2
};

}  // namespace lockstep::kernels
