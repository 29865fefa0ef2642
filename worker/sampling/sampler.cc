#include "worker/sampling/sampler.h"

#include <glog/logging.h>

#include <algorithm>
#include <limits>

#include "worker/core/host_part.h"
#include "worker/sampling/sampling_noise.h"

namespace lockstep {
namespace {

// Whether nothing may be chosen: the best of all is minus infinity.
bool HasNone(absl::Span<const float> logits, LogitBlocks& blocks) {
  blocks.Reset(logits);
  return blocks.best() == -std::numeric_limits<float>::infinity();
}

}  // namespace

Sampler::Sampler(int vocab_size)
    : adjusted_(vocab_size),
      adjustments_(vocab_size),
      blocks_(vocab_size),
      candidates_(vocab_size),
      top_logprobs_(vocab_size) {}

uint32_t Sampler::Sample(absl::Span<const float> logits,
                         const Sequence& sequence, TokenMask mask) {
  CHECK_EQ(logits.size(), adjusted_.size());
  if (!mask.empty()) {
    logits = Masked(logits, sequence, mask);
  } else if (ChangesLogits(sequence)) {
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

absl::Span<const float> Sampler::Masked(absl::Span<const float> logits,
                                        const Sequence& sequence,
                                        TokenMask mask) {
  const absl::Span<float> masked = absl::MakeSpan(adjusted_);
  CopyMasked(logits, mask, masked);
  if (!ChangesLogits(sequence)) return masked;
  adjustments_.Apply(sequence, masked);
  if (HasNone(masked, blocks_)) CopyMasked(logits, mask, masked);
  return masked;
}

v1::PositionLogprobs Sampler::Logprobs(absl::Span<const float> logits,
                                       uint32_t token, int k, TokenMask mask) {
  CHECK_EQ(logits.size(), adjusted_.size());
  if (mask.empty()) return top_logprobs_.Of(logits, token, k);
  CopyMasked(logits, mask, absl::MakeSpan(adjusted_));
  v1::PositionLogprobs logprobs = top_logprobs_.Of(adjusted_, token, k);
  auto& top = *logprobs.mutable_top();
  while (!top.empty() && !Allows(mask, top.rbegin()->token_id())) {
    top.RemoveLast();
  }
  return logprobs;
}

}  // namespace lockstep
