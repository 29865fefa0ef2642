#pragma once

#include <cstdint>

namespace lockstep::kernels {

// How head vectors rotate. Halves: dimension i pairs with i + rotary_dim / 2
// (Hugging Face). Neighbours: 2i pairs with 2i + 1 (GGUF `llama`).
enum class RopeStyle : uint8_t { kHalves, kNeighbours };

// Rotates the first rotary_dim dimensions of x in place by the angles whose
// cosines and sines are given, [rotary_dim / 2]: (a, b) becomes
// (a·cos - b·sin, b·cos + a·sin), each product and sum rounded, so plain code
// gives the same bits on every instruction set.
void Rotate(RopeStyle style, int rotary_dim, const float* cos, const float* sin,
            float* x);

}  // namespace lockstep::kernels
