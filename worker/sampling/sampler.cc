#include "worker/sampling/sampler.h"

#include <glog/logging.h>

#include <algorithm>
#include <limits>

#include "worker/sampling/exp_weights.h"
#include "worker/sampling/sampling_noise.h"

namespace lockstep {
namespace {

uint32_t Greedy(absl::Span<const float> logits) {
  const auto best = std::find(logits.begin(), logits.end(), MaxLogit(logits));
  return static_cast<uint32_t>(best - logits.begin());
}

}  // namespace

Sampler::Sampler(int vocab_size)
    : logits_(vocab_size),
      adjustments_(vocab_size),
      candidates_(vocab_size),
      top_logprobs_(vocab_size) {}

uint32_t Sampler::Sample(absl::Span<const float> logits,
                         const Sequence& sequence) {
  const v1::ResolvedSampling& sampling = sequence.sampling();
  CopyLogits(logits);
  adjustments_.Apply(sequence, absl::MakeSpan(logits_));
  if (sampling.temperature() == 0) return Greedy(logits_);

  candidates_.Reset(logits_, sampling.temperature());
  if (sampling.top_k() > 0) candidates_.KeepTopK(sampling.top_k());
  candidates_.KeepTopP(sampling.top_p());
  candidates_.KeepMinP(sampling.min_p());
  return candidates_.Draw(
      SamplingNoise(sampling.seed(), sequence.id().choice,
                    static_cast<uint32_t>(sequence.num_output_tokens())));
}

v1::PositionLogprobs Sampler::Logprobs(absl::Span<const float> logits,
                                       uint32_t token, int k) {
  CopyLogits(logits);
  return top_logprobs_.Of(logits_, token, k);
}

void Sampler::CopyLogits(absl::Span<const float> logits) {
  CHECK_EQ(logits.size(), logits_.size());
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < logits.size(); ++i) {
    // Only NaN differs from itself.
    logits_[i] = logits[i] == logits[i] ? logits[i] : kLeast;
  }
}

}  // namespace lockstep
