#include "worker/sampling/exp_weights.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace lockstep {
namespace {

constexpr float kLowest = -87.0f;  // e^-87 is still a normal float

// exp for x in [-87, 0]: x = n ln 2 + r with |r| <= ln 2 / 2, then the Taylor
// polynomial of e^r, whose first term left out is r^7 / 5040 < 1.3e-7 of it,
// and n added to the exponent. The two parts of ln 2 are of Cody and Waite.
inline float ExpNonPositive(float x) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr float kRoundToInteger = 12582912.0f;  // 1.5 * 2^23
  const float shifted = x * kLog2E + kRoundToInteger;
  const float n = shifted - kRoundToInteger;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const uint32_t exponent = std::bit_cast<uint32_t>(shifted) << 23;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) + exponent);
}

}  // namespace

float MaxLogit(absl::Span<const float> logits) {
  constexpr size_t kLanes = 16;  // the compiler makes vectors of them
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  std::array<float, kLanes> lanes;
  lanes.fill(kLeast);
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float logit = logits[i + lane];
      lanes[lane] = lanes[lane] < logit ? logit : lanes[lane];
    }
  }
  float max = kLeast;
  for (; i < logits.size(); ++i) max = std::max(max, logits[i]);
  for (const float lane : lanes) max = std::max(max, lane);
  return max;
}

void ExpWeights(absl::Span<const float> logits, float max, float scale,
                absl::Span<float> weights) {
  const float* in = logits.data();
  float* out = weights.data();
  const size_t size = logits.size();
  for (size_t i = 0; i < size; ++i) {
    // The difference of equal infinities is no number.
    const float x = in[i] == max ? 0.0f : (in[i] - max) * scale;
    const float weight = ExpNonPositive(x < kLowest ? kLowest : x);
    const float capped = weight > 1.0f ? 1.0f : weight;
    out[i] = x < kLowest ? 0.0f : capped;
  }
}

}  // namespace lockstep
