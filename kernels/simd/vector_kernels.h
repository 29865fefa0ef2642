#pragma once

#include "kernels/simd/gate.h"
#include "kernels/simd/lanes.h"

// Row-wise kernels for a vector type V (simd_*.h); lanes.h defines the bits.
namespace lockstep::kernels {

template <class V>
struct VectorExpParts {
  typename V::Floats less_one;
  typename V::Floats power;
};

template <class V>
VectorExpParts<V> SplitExp(typename V::Floats x) {
  const auto shifted = V::Fma(x, V::Set(kLog2E), V::Set(kRoundToInt));
  const auto n = V::Sub(shifted, V::Set(kRoundToInt));
  auto r = V::Fma(n, V::Set(-kLn2High), x);
  r = V::Fma(n, V::Set(-kLn2Low), r);
  auto q = V::Set(kExpPolynomial[0]);
  for (int i = 1; i < 5; ++i) q = V::Fma(q, r, V::Set(kExpPolynomial[i]));
  return {V::Fma(V::Mul(r, r), q, r), V::PowerOfTwo(shifted)};
}

template <class V>
typename V::Floats Exp(typename V::Floats x) {
  const auto e = SplitExp<V>(V::Min(V::Set(kExpHigh), x));
  const auto result = V::Mul(V::Add(e.less_one, V::Set(1.0f)), e.power);
  return V::ZeroBelow(x, V::Set(kExpLow), result);
}

template <class V>
typename V::Floats Tanh(typename V::Floats x) {
  const auto twice = V::Min(V::Set(kTanhLimit), V::Add(x, x));
  const auto e = SplitExp<V>(V::Max(V::Set(-kTanhLimit), twice));
  const auto less_one =
      V::Fma(e.less_one, e.power, V::Sub(e.power, V::Set(1.0f)));
  return V::Div(less_one, V::Add(less_one, V::Set(2.0f)));
}

template <class V>
typename V::Floats SoftCap(typename V::Floats x, typename V::Floats cap) {
  return V::Mul(cap, Tanh<V>(V::Div(x, cap)));
}

template <class V>
void SoftCap(float* x, int count, float cap) {
  for (int i = 0; i < count; i += V::kWidth) {
    const auto value = V::LoadFirst(x + i, count - i);
    V::StoreFirst(x + i, SoftCap<V>(value, V::Set(cap)), count - i);
  }
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
typename V::Floats Gated(Gate gate, typename V::Floats x,
                         typename V::Floats up) {
  auto y = V::Sub(V::Zero(), x);
  if (gate == Gate::kGeluTanh) {
    y = V::Mul(x,
               V::Fma(V::Mul(x, x), V::Set(kGeluCubic), V::Set(kGeluLinear)));
  }
  return V::Mul(V::Div(x, V::Add(V::Set(1.0f), Exp<V>(y))), up);
}

template <class V>
void GatedMul(Gate gate, const float* x, const float* up, int dim, float* y) {
  for (int i = 0; i < dim; i += V::kWidth) {
    const auto g = V::LoadFirst(x + i, dim - i);
    const auto u = V::LoadFirst(up + i, dim - i);
    V::StoreFirst(y + i, Gated<V>(gate, g, u), dim - i);
  }
}

}  // namespace lockstep::kernels
