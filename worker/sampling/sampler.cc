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
      allowed_((vocab_size + 31) / 32),
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
  mask = Narrowed(mask, sequence.sampling());
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

TokenMask Sampler::Narrowed(TokenMask mask,
                            const v1::ResolvedSampling& sampling) {
  if (sampling.allowed_token_ids().empty()) return mask;
  std::fill(allowed_.begin(), allowed_.end(), 0);
  bool has_one = false;
  for (const uint32_t id : sampling.allowed_token_ids()) {
    if (!mask.empty() && !Allows(mask, id)) continue;
    allowed_[id / 32] |= uint32_t{1} << (id % 32);
    has_one = true;
  }
  return has_one ? TokenMask(allowed_) : mask;
}

absl::Span<const float> Sampler::Adjusted(absl::Span<const float> logits,
                                          const Sequence& sequence,
                                          TokenMask mask) {
  const absl::Span<float> adjusted = absl::MakeSpan(adjusted_);
  Copy(logits, mask, adjusted);
  if (!ChangesLogits(sequence)) return adjusted;
  adjustments_.Apply(sequence, adjusted);
  const bool masks = MasksStopIds(sequence) || KeepsIdsOut(sequence.sampling());
  if (masks && HasNone(adjusted, blocks_)) Copy(logits, mask, adjusted);
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
