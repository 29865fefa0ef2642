#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/simd/gate.h"

namespace lockstep::kernels {

// What every instruction set must follow to the bit, written for one lane.
//
// A reduction over a vector runs in 16 virtual lanes: lane l takes elements l,
// l + 16, …; at the end the lanes fold by halves, (l) + (l + 8), then 4, 2, 1.
inline constexpr int kLanes = 16;

inline float FoldLanes(const float lanes[kLanes]) {
  float sum[kLanes];
  for (int i = 0; i < kLanes; ++i) sum[i] = lanes[i];
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) sum[i] += sum[i + half];
  }
  return sum[0];
}

// e^x = 2^n·e^r with n = round(x·log2 e), r = x - n·ln 2 in two steps, and
// e^r = 1 + r + r²·q(r), q the degree-4 polynomial of least relative error on
// |r| <= ln 2 / 2 (3e-9). Below kExpLow the result is 0, above kExpHigh that of
// kExpHigh, so it is never infinite nor subnormal.
inline constexpr float kExpLow = -87.3365f;
inline constexpr float kExpHigh = 88.37f;
inline constexpr float kLog2E = 0x1.715476p+0f;
inline constexpr float kLn2High = 0x1.62e4p-1f;
inline constexpr float kLn2Low = 0x1.7f7d1cp-20f;
// Adding it to a float below 2^22 rounds that to an integer, held in the low
// bits.
inline constexpr float kRoundToInt = 0x1.8p23f;
inline constexpr float kExpPolynomial[5] = {0x1.6a2434p-10f, 0x1.1239e2p-7f,
                                            0x1.5558f2p-5f, 0x1.555492p-3f,
                                            0x1.fffffcp-2f};

struct ExpParts {
  float less_one;  // e^r - 1
  float power;     // 2^n
};

inline ExpParts SplitExp(float x) {
  const float shifted = std::fma(x, kLog2E, kRoundToInt);
  const float n = shifted - kRoundToInt;
  float r = std::fma(n, -kLn2High, x);
  r = std::fma(n, -kLn2Low, r);
  float q = kExpPolynomial[0];
  for (int i = 1; i < 5; ++i) q = std::fma(q, r, kExpPolynomial[i]);
  const uint32_t power = (std::bit_cast<uint32_t>(shifted) + 127) << 23;
  return {std::fma(r * r, q, r), std::bit_cast<float>(power)};
}

inline float Exp(float x) {
  if (x < kExpLow) return 0;
  if (x > kExpHigh) x = kExpHigh;
  const ExpParts e = SplitExp(x);
  return (e.less_one + 1.0f) * e.power;
}

// tanh(x) = (e^2x - 1) / (e^2x + 1), where e^2x - 1 keeps the digits of a small
// x; from kTanhLimit / 2 on it is 1.
inline constexpr float kTanhLimit = 20.0f;

inline float Tanh(float x) {
  float twice = x + x;
  if (twice > kTanhLimit) twice = kTanhLimit;
  if (twice < -kTanhLimit) twice = -kTanhLimit;
  const ExpParts e = SplitExp(twice);
  const float less_one = std::fma(e.less_one, e.power, e.power - 1.0f);
  return less_one / (less_one + 2.0f);
}

inline float SoftCap(float x, float cap) { return cap * Tanh(x / cap); }

// Both gates are x / (1 + e^y): y is -x of SiLU, and of GELU -2√(2/π)·(x +
// 0.044715·x³), as (1 + tanh(-y / 2)) / 2 = 1 / (1 + e^y).
inline constexpr float kGeluLinear = -0x1.988454p+0f;
inline constexpr float kGeluCubic = -0x1.2444f2p-4f;

inline float Gated(Gate gate, float x, float up) {
  const float y = gate == Gate::kSilu
                      ? 0.0f - x
                      : x * std::fma(x * x, kGeluCubic, kGeluLinear);
  return x / (1.0f + Exp(y)) * up;
}

}  // namespace lockstep::kernels
