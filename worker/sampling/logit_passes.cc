#include "worker/sampling/logit_passes.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

namespace lockstep {
namespace {

// The loops are written once and inlined into a function for each instruction
// set, where the compiler makes vectors of them.
constexpr float kLeast = -std::numeric_limits<float>::infinity();
constexpr float kLowest = -87.0f;  // e^-87 is still a normal float

// So many of T side by side; the compiler makes registers of them.
template <typename T, size_t kCount>
struct LanesOf {
  typedef T Type [[gnu::vector_size(kCount * sizeof(T))]];
};
template <typename T, size_t kCount>
using Lanes = typename LanesOf<T, kCount>::Type;

// The lanes of `all`, joined in a tree: the upper half with the lower.
template <typename T, size_t kCount, typename Join>
[[gnu::always_inline]] inline T JoinLanes(const T* all, Join join) {
  if constexpr (kCount == 1) {
    return *all;
  } else {
    using Half = Lanes<T, kCount / 2>;
    Half lower, upper;
    std::memcpy(&lower, all, sizeof(Half));
    std::memcpy(&upper, all + kCount / 2, sizeof(Half));
    join(lower, upper);
    return JoinLanes<T, kCount / 2>(reinterpret_cast<const T*>(&lower), join);
  }
}

struct TakeLarger {
  template <typename T>
  [[gnu::always_inline]] void operator()(T& a, const T& b) const {
    a = a < b ? b : a;
  }
};

struct Add {
  template <typename T>
  [[gnu::always_inline]] void operator()(T& a, const T& b) const {
    a += b;
  }
};

template <size_t kLanes>  // those of a register
[[gnu::always_inline]] inline void BlockMaxima(absl::Span<const float> logits,
                                               absl::Span<float> maxima) {
  const float* in = logits.data();
  const size_t full_blocks = logits.size() / kLogitBlock;
  for (size_t block = 0; block < full_blocks; ++block, in += kLogitBlock) {
    Lanes<float, kLanes> lanes = kLeast - Lanes<float, kLanes>{};
    for (size_t i = 0; i < kLogitBlock; i += kLanes) {
      Lanes<float, kLanes> some;
      std::memcpy(&some, in + i, sizeof(some));
      TakeLarger()(lanes, some);
    }
    maxima[block] = JoinLanes<float, kLanes>(
        reinterpret_cast<const float*>(&lanes), TakeLarger());
  }
  if (full_blocks == maxima.size()) return;
  float max = kLeast;
  for (; in < logits.end(); ++in) TakeLarger()(max, *in);
  maxima[full_blocks] = max;
}

// exp for x in [-87, 0]: x = n ln 2 + r with |r| <= ln 2 / 2, then the Taylor
// polynomial of e^r, whose first term left out is r^7 / 5040 < 1.3e-7 of it,
// and n added to the exponent. The two parts of ln 2 are of Cody and Waite.
[[gnu::always_inline]] inline float ExpNonPositive(float x) {
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

[[gnu::always_inline]] inline void ExpWeights(absl::Span<const float> logits,
                                              float max, float scale,
                                              absl::Span<float> weights) {
  const float* in = logits.data();
  float* out = weights.data();
  const size_t size = logits.size();
  for (size_t i = 0; i < size; ++i) {
    const float logit = in[i] == in[i] ? in[i] : kLeast;
    // The difference of equal infinities is no number.
    const float x = logit == max ? 0.0f : (logit - max) * scale;
    const float weight = ExpNonPositive(x < kLowest ? kLowest : x);
    const float capped = weight > 1.0f ? 1.0f : weight;
    out[i] = x < kLowest ? 0.0f : capped;
  }
}

[[gnu::always_inline]] inline void BlockSums(absl::Span<const float> weights,
                                             absl::Span<double> sums) {
  constexpr size_t kLanes = 8;
  const float* in = weights.data();
  const size_t full_blocks = weights.size() / kLogitBlock;
  for (size_t block = 0; block < full_blocks; ++block, in += kLogitBlock) {
    Lanes<double, kLanes> lanes = {};
    for (size_t i = 0; i < kLogitBlock; i += kLanes) {
      Lanes<float, kLanes> some;
      std::memcpy(&some, in + i, sizeof(some));
      lanes += __builtin_convertvector(some, Lanes<double, kLanes>);
    }
    sums[block] = JoinLanes<double, kLanes>(
        reinterpret_cast<const double*>(&lanes), Add());
  }
  if (full_blocks == sums.size()) return;
  double sum = 0;
  for (; in < weights.end(); ++in) sum += *in;
  sums[full_blocks] = sum;
}

void BlockMaximaSse2(absl::Span<const float> logits, absl::Span<float> maxima) {
  BlockMaxima<4>(logits, maxima);
}
[[gnu::target("avx2")]] void BlockMaximaAvx2(absl::Span<const float> logits,
                                             absl::Span<float> maxima) {
  BlockMaxima<8>(logits, maxima);
}
[[gnu::target("avx512f,avx512vl")]] void BlockMaximaAvx512(
    absl::Span<const float> logits, absl::Span<float> maxima) {
  BlockMaxima<16>(logits, maxima);
}

void ExpWeightsSse2(absl::Span<const float> logits, float max, float scale,
                    absl::Span<float> weights) {
  ExpWeights(logits, max, scale, weights);
}
[[gnu::target("avx2")]] void ExpWeightsAvx2(absl::Span<const float> logits,
                                            float max, float scale,
                                            absl::Span<float> weights) {
  ExpWeights(logits, max, scale, weights);
}
[[gnu::target("avx512f,avx512vl")]] void ExpWeightsAvx512(
    absl::Span<const float> logits, float max, float scale,
    absl::Span<float> weights) {
  ExpWeights(logits, max, scale, weights);
}

void BlockSumsSse2(absl::Span<const float> weights, absl::Span<double> sums) {
  BlockSums(weights, sums);
}
[[gnu::target("avx2")]] void BlockSumsAvx2(absl::Span<const float> weights,
                                           absl::Span<double> sums) {
  BlockSums(weights, sums);
}
[[gnu::target("avx512f,avx512vl")]] void BlockSumsAvx512(
    absl::Span<const float> weights, absl::Span<double> sums) {
  BlockSums(weights, sums);
}

constexpr LogitPasses kAll[] = {
    {"sse2", BlockMaximaSse2, ExpWeightsSse2, BlockSumsSse2},
    {"avx2", BlockMaximaAvx2, ExpWeightsAvx2, BlockSumsAvx2},
    {"avx512", BlockMaximaAvx512, ExpWeightsAvx512, BlockSumsAvx512},
};

size_t NumSupported() {
  if (!__builtin_cpu_supports("avx2")) return 1;
  return __builtin_cpu_supports("avx512vl") ? 3 : 2;
}

}  // namespace

absl::Span<const LogitPasses> AllLogitPasses() {
  static const size_t num_supported = NumSupported();
  return {kAll, num_supported};
}

const LogitPasses& GetLogitPasses() { return AllLogitPasses().back(); }

}  // namespace lockstep
