#pragma once

#include "kernels/simd/lanes.h"

// Row-wise kernels for a vector type V (simd_*.h); lanes.h defines the bits.
namespace lockstep::kernels {

template <class V>
typename V::Floats Exp(typename V::Floats x) {
  const auto clamped = V::Min(V::Set(kExpHigh), x);
  const auto shifted = V::Fma(clamped, V::Set(kLog2E), V::Set(kRoundToInt));
  const auto n = V::Sub(shifted, V::Set(kRoundToInt));
  auto r = V::Fma(n, V::Set(-kLn2High), clamped);
  r = V::Fma(n, V::Set(-kLn2Low), r);
  auto q = V::Set(kExpPolynomial[0]);
  for (int i = 1; i < 5; ++i) q = V::Fma(q, r, V::Set(kExpPolynomial[i]));
  const auto e_r = V::Add(V::Fma(V::Mul(r, r), q, r), V::Set(1.0f));
  return V::ZeroBelow(x, V::Set(kExpLow), V::Mul(e_r, V::PowerOfTwo(shifted)));
}

template <class V>
void RmsNorm(const float* x, int dim, const float* weight, float eps,
             float* y) {
  typename V::Floats lanes[V::kVectors];
  for (auto& lane : lanes) lane = V::Zero();
  for (int i = 0; i < dim; i += kLanes) {
    for (int v = 0; v < V::kVectors; ++v) {
      const int begin = i + v * V::kWidth;
      const auto value = V::LoadFirst(x + begin, dim - begin);
      lanes[v] = V::Fma(value, value, lanes[v]);
    }
  }
  const float mean = V::FoldSum(lanes) / static_cast<float>(dim);
  const auto scale = V::Set(1.0f / __builtin_sqrtf(mean + eps));
  for (int i = 0; i < dim; i += V::kWidth) {
    const auto scaled = V::Mul(V::LoadFirst(x + i, dim - i), scale);
    V::StoreFirst(y + i, V::Mul(scaled, V::LoadFirst(weight + i, dim - i)),
                  dim - i);
  }
}

template <class V>
typename V::Floats SiluMul(typename V::Floats gate, typename V::Floats up) {
  const auto exp = Exp<V>(V::Sub(V::Zero(), gate));
  return V::Mul(V::Div(gate, V::Add(V::Set(1.0f), exp)), up);
}

template <class V>
void SiluMul(const float* gate, const float* up, int dim, float* y) {
  for (int i = 0; i < dim; i += V::kWidth) {
    const auto g = V::LoadFirst(gate + i, dim - i);
    const auto u = V::LoadFirst(up + i, dim - i);
    V::StoreFirst(y + i, SiluMul<V>(g, u), dim - i);
  }
}

}  // namespace lockstep::kernels
