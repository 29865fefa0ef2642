#include "kernels/cuda/experts/expert_choice.h"

#include <cstddef>

#include "kernels/cuda/device.h"
#include "kernels/cuda/reduction.h"
#include "kernels/simd/lanes.h"

namespace lockstep::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int32_t kNobody = 0x7fffffff;

constexpr float kExp0 = kernels::kExpPolynomial[0];
constexpr float kExp1 = kernels::kExpPolynomial[1];
constexpr float kExp2 = kernels::kExpPolynomial[2];
constexpr float kExp3 = kernels::kExpPolynomial[3];
constexpr float kExp4 = kernels::kExpPolynomial[4];

// kernels::Exp, which is the host's, to the bit.
__device__ inline float ExpOfHost(float x) {
  if (x < kernels::kExpLow) return 0;
  if (x > kernels::kExpHigh) x = kernels::kExpHigh;
  const float shifted = fmaf(x, kernels::kLog2E, kernels::kRoundToInt);
  const float n = shifted - kernels::kRoundToInt;
  float r = fmaf(n, -kernels::kLn2High, x);
  r = fmaf(n, -kernels::kLn2Low, r);
  float q = fmaf(kExp0, r, kExp1);
  q = fmaf(q, r, kExp2);
  q = fmaf(q, r, kExp3);
  q = fmaf(q, r, kExp4);
  const float power = __uint_as_float((__float_as_uint(shifted) + 127) << 23);
  return (fmaf(r * r, q, r) + 1.0f) * power;
}

__device__ inline bool IsNan(float x) { return x != x; }

// An expert, or a group of them.
struct Candidate {
  float score;
  int32_t number;

  __device__ bool BetterThan(const Candidate& other) const {
    return score > other.score ||
           (score == other.score && number < other.number);
  }
};

__device__ inline Candidate BetterThanAll() { return {-MinusInfinity(), -1}; }
__device__ inline Candidate WorseThanAll() {
  return {MinusInfinity(), kNobody};
}

__device__ inline Candidate BestOfWarp(Candidate best) {
  for (int bits = kWarpLanes / 2; bits > 0; bits /= 2) {
    const Candidate other = {__shfl_xor_sync(kAllLanes, best.score, bits),
                             __shfl_xor_sync(kAllLanes, best.number, bits)};
    if (other.BetterThan(best)) best = other;
  }
  return best;
}

// One token's choice, by a warp. Number i, of an expert or a group, is always
// read and written by lane i % 32, so that lanes wait for each other only where
// they exchange values.
class Choice {
 public:
  // scores [num_experts] and groups [rule.groups] are the warp's own.
  __device__ Choice(const ExpertChoiceArgs& args, float* scores, float* groups)
      : rule_(args.rule),
        bias_(args.bias),
        num_experts_(args.num_experts),
        lane_(threadIdx.x),
        scores_(scores),
        groups_(groups) {}

  __device__ void BySoftmax(const float* logits, int32_t* experts,
                            float* weights) {
    Read(logits);
    const auto score_of = [this](int i) { return scores_[i]; };
    Candidate last = BetterThanAll();
    float largest = 0, total = 0;
    for (int i = 0; i < rule_.count; ++i) {
      last = NextBest(0, num_experts_, score_of, last);
      if (i == 0) largest = last.score;
      const float weight = ExpOfHost(last.score - largest);
      total += weight;
      Write(i, last.number, weight, experts, weights);
    }
    if (!rule_.renormalize) {
      float all = 0;
      for (int i = lane_; i < num_experts_; i += kWarpLanes) {
        all += ExpOfHost(scores_[i] - largest);
      }
      total = WarpSum(all);
    }
    Finish(total, weights);
  }

  __device__ void BySigmoid(const float* logits, int32_t* experts,
                            float* weights) {
    Read(logits);
    for (int i = lane_; i < num_experts_; i += kWarpLanes) {
      if (IsNan(scores_[i])) continue;
      scores_[i] = 1.0f / (1.0f + ExpOfHost(0.0f - scores_[i]));
    }
    const auto biased = [this](int i) { return Biased(i); };
    if (rule_.groups_chosen < rule_.groups) LeaveOutGroups();
    Candidate last = BetterThanAll();
    // So that no score of a broken model divides by zero.
    float total = 1e-20f;
    for (int i = 0; i < rule_.count; ++i) {
      last = NextBest(0, num_experts_, biased, last);
      const int owner = last.number % kWarpLanes;
      const float score = __shfl_sync(
          kAllLanes, lane_ == owner ? scores_[last.number] : 0.0f, owner);
      const float weight = IsNan(score) ? 0.0f : score;
      total += weight;
      Write(i, last.number, weight, experts, weights);
    }
    Finish(rule_.renormalize ? total : 1.0f, weights);
  }

 private:
  __device__ void Read(const float* logits) {
    for (int i = lane_; i < num_experts_; i += kWarpLanes) {
      scores_[i] = logits[i];
    }
  }

  __device__ float Biased(int i) const {
    return bias_ == nullptr ? scores_[i] : scores_[i] + bias_[i];
  }

  // The best of numbers [begin, end) that `last` is better than, for all lanes;
  // score_of(number) may be NaN.
  template <typename ScoreOf>
  __device__ Candidate NextBest(int begin, int end, const ScoreOf& score_of,
                                const Candidate& last) const {
    Candidate best = WorseThanAll();
    for (int i = begin - begin % kWarpLanes + lane_; i < end; i += kWarpLanes) {
      if (i < begin) continue;
      const float score = score_of(i);
      const Candidate candidate = {IsNan(score) ? MinusInfinity() : score, i};
      if (last.BetterThan(candidate) && candidate.BetterThan(best)) {
        best = candidate;
      }
    }
    return BestOfWarp(best);
  }

  // Experts of groups that are not chosen become NaN, the least.
  __device__ void LeaveOutGroups() {
    const auto biased = [this](int i) { return Biased(i); };
    const int size = num_experts_ / rule_.groups;
    for (int group = 0; group < rule_.groups; ++group) {
      const int begin = group * size;
      const Candidate best =
          NextBest(begin, begin + size, biased, BetterThanAll());
      const float pair =
          best.score + NextBest(begin, begin + size, biased, best).score;
      if (lane_ == group % kWarpLanes) groups_[group] = pair;
    }
    const auto pair_of = [this](int group) { return groups_[group]; };
    Candidate worst_chosen = BetterThanAll();
    for (int i = 0; i < rule_.groups_chosen; ++i) {
      worst_chosen = NextBest(0, rule_.groups, pair_of, worst_chosen);
    }
    for (int group = 0; group < rule_.groups; ++group) {
      const int owner = group % kWarpLanes;
      const float pair =
          __shfl_sync(kAllLanes, lane_ == owner ? groups_[group] : 0.0f, owner);
      const float score = IsNan(pair) ? MinusInfinity() : pair;
      if (!worst_chosen.BetterThan({score, group})) continue;
      const int end = (group + 1) * size;
      for (int i = lane_; i < end; i += kWarpLanes) {
        if (i >= group * size) scores_[i] = __uint_as_float(0x7fc00000);
      }
    }
  }

  __device__ void Write(int i, int32_t expert, float weight, int32_t* experts,
                        float* weights) const {
    if (lane_ != i % kWarpLanes) return;
    experts[i] = expert;
    weights[i] = weight;
  }

  __device__ void Finish(float divisor, float* weights) const {
    for (int i = lane_; i < rule_.count; i += kWarpLanes) {
      weights[i] = weights[i] / divisor * rule_.scale;
    }
  }

  const kernels::ExpertRule& rule_;
  const float* const bias_;
  const int num_experts_;
  const int lane_;
  float* const scores_;
  float* const groups_;
};

// A warp a token.
__global__ void __launch_bounds__(kWarps* kWarpLanes)
    ChooseExpertsKernel(ExpertChoiceArgs args) {
  const int token = blockIdx.x * kWarps + threadIdx.y;
  if (token >= args.tokens) return;
  float* scores = DynamicShared<float>() +
                  threadIdx.y * (args.num_experts + args.rule.groups);
  Choice choice(args, scores, scores + args.num_experts);
  const size_t row = static_cast<size_t>(token) * args.rule.count;
  const float* logits =
      args.logits + static_cast<size_t>(token) * args.num_experts;
  if (args.rule.sigmoid) {
    choice.BySigmoid(logits, args.experts + row, args.weights + row);
  } else {
    choice.BySoftmax(logits, args.experts + row, args.weights + row);
  }
}

}  // namespace

CudaError ChooseExperts(const ExpertChoiceArgs& args, Stream stream) {
  if (args.tokens == 0) return kCudaSuccess;
  const size_t floats = args.num_experts + args.rule.groups;
  return Launch(
      ChooseExpertsKernel,
      {dim3{static_cast<unsigned>((args.tokens + kWarps - 1) / kWarps)},
       dim3{kWarpLanes, kWarps}, kWarps * floats * sizeof(float)},
      stream, args);
}

}  // namespace lockstep::cuda
