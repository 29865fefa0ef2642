#include "worker/sampling/sampler.h"

#include <glog/logging.h>

#include <algorithm>

#include "worker/sampling/sampling_noise.h"

namespace lockstep {

Sampler::Sampler(int vocab_size)
    : adjusted_(vocab_size),
      adjustments_(vocab_size),
      blocks_(vocab_size),
      candidates_(vocab_size),
      top_logprobs_(vocab_size) {}

uint32_t Sampler::Sample(absl::Span<const float> logits,
                         const Sequence& sequence) {
  CHECK_EQ(logits.size(), adjusted_.size());
  if (LogitAdjustments::Changes(sequence)) {
    std::copy(logits.begin(), logits.end(), adjusted_.begin());
    adjustments_.Apply(sequence, absl::MakeSpan(adjusted_));
    logits = adjusted_;
  }
  const v1::ResolvedSampling& sampling = sequence.sampling();
  if (sampling.temperature() == 0) {
    blocks_.Reset(logits);
    return blocks_.best_id();
  }
  candidates_.Reset(logits, sampling.temperature());
  if (sampling.top_k() > 0) candidates_.KeepTopK(sampling.top_k());
  candidates_.KeepTopP(sampling.top_p());
  candidates_.KeepMinP(sampling.min_p());
  return candidates_.Draw(
      SamplingNoise(sampling.seed(), sequence.id().choice,
                    static_cast<uint32_t>(sequence.num_output_tokens())));
}

v1::PositionLogprobs Sampler::Logprobs(absl::Span<const float> logits,
                                       uint32_t token, int k) {
  CHECK_EQ(logits.size(), adjusted_.size());
  return top_logprobs_.Of(logits, token, k);
}

}  // namespace lockstep
