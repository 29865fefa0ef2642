#include "worker/sampling/sampler.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
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

void Copy(absl::Span<const float> logits, TokenMask mask,
          absl::Span<float> copy) {
  if (!mask.empty()) return CopyMasked(logits, mask, copy);
  std::copy(logits.begin(), logits.end(), copy.begin());
}

}  // namespace

Sampler::Sampler(int vocab_size)
    : adjusted_(vocab_size),
      adjustments_(vocab_size),
      blocks_(vocab_size),
      candidates_(vocab_size),
      top_logprobs_(vocab_size) {}

// The first one is finite where nothing is amiss.
bool Sampler::CanSample(absl::Span<const float> logits) {
  return std::any_of(logits.begin(), logits.end(),
                     [](float logit) { return std::isfinite(logit); });
}

uint32_t Sampler::Sample(absl::Span<const float> logits,
                         const Sequence& sequence, TokenMask mask) {
  CHECK_EQ(logits.size(), adjusted_.size());
  if (!mask.empty() || ChangesLogits(sequence)) {
    logits = Adjusted(logits, sequence, mask);
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

absl::Span<const float> Sampler::Adjusted(absl::Span<const float> logits,
                                          const Sequence& sequence,
                                          TokenMask mask) {
  const absl::Span<float> adjusted = absl::MakeSpan(adjusted_);
  Copy(logits, mask, adjusted);
  if (!ChangesLogits(sequence)) return adjusted;
  adjustments_.Apply(sequence, adjusted);
  if (MasksStopIds(sequence) && HasNone(adjusted, blocks_)) {
    Copy(logits, mask, adjusted);
  }
  return adjusted;
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
