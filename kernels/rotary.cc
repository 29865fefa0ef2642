#include "kernels/rotary.h"

namespace lockstep::kernels {

void Rotate(RopeStyle style, int rotary_dim, const float* cos, const float* sin,
            float* x) {
  const int half = rotary_dim / 2;
  const bool halves = style == RopeStyle::kHalves;
  const int step = halves ? 1 : 2;
  const int pair = halves ? half : 1;
  for (int i = 0; i < half; ++i) {
    float& first = x[i * step];
    float& second = x[i * step + pair];
    const float a = first;
    const float b = second;
    first = a * cos[i] - b * sin[i];
    second = b * cos[i] + a * sin[i];
  }
}

}  // namespace lockstep::kernels
