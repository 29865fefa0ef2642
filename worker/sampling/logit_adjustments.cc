#include "worker/sampling/logit_adjustments.h"

#include <algorithm>
#include <limits>

#include "worker/core/host_part.h"

namespace lockstep {
namespace {

constexpr uint32_t kDone = 1u << 31;  // in a count: this id is penalized

void AddBias(const v1::ResolvedSampling& sampling, absl::Span<float> logits) {
  for (int i = 0; i < sampling.bias_token_ids_size(); ++i) {
    logits[sampling.bias_token_ids(i)] += sampling.bias_values(i);
  }
}

void MaskStopIds(const v1::ResolvedSampling& sampling,
                 absl::Span<float> logits) {
  for (const uint32_t id : sampling.stop_token_ids()) {
    logits[id] = -std::numeric_limits<float>::infinity();
  }
}

void MaskBadWords(const Sequence& sequence, absl::Span<float> logits) {
  const v1::ResolvedSampling& sampling = sequence.sampling();
  const absl::Span<const uint32_t> output = sequence.output();
  const uint32_t* word = sampling.bad_word_token_ids().data();
  for (const uint32_t size : sampling.bad_word_sizes()) {
    const uint32_t begun = size - 1;
    if (begun <= output.size() &&
        std::equal(word, word + begun, output.end() - begun)) {
      logits[word[begun]] = -std::numeric_limits<float>::infinity();
    }
    word += size;
  }
}

float Penalized(float logit, uint32_t count,
                const v1::ResolvedSampling& sampling) {
  const float repetition = sampling.repetition_penalty();
  logit = logit > 0 ? logit / repetition : logit * repetition;
  if (count == 0) return logit;
  return logit - sampling.presence_penalty() -
         sampling.frequency_penalty() * static_cast<float>(count);
}

}  // namespace

LogitAdjustments::LogitAdjustments(int vocab_size) : counts_(vocab_size) {}

void LogitAdjustments::Apply(const Sequence& sequence,
                             absl::Span<float> logits) {
  const v1::ResolvedSampling& sampling = sequence.sampling();
  AddBias(sampling, logits);
  if (HasPenalties(sampling)) ApplyPenalties(sequence, logits);
  MaskBadWords(sequence, logits);
  if (MasksStopIds(sequence)) MaskStopIds(sampling, logits);
}

void LogitAdjustments::ApplyPenalties(const Sequence& sequence,
                                      absl::Span<float> logits) {
  const v1::ResolvedSampling& sampling = sequence.sampling();
  // The prompt matters to repetition alone.
  const absl::Span<const uint32_t> penalized =
      sampling.repetition_penalty() != 1 ? sequence.tokens()
                                         : sequence.output();
  for (const uint32_t id : sequence.output()) ++counts_[id];
  for (const uint32_t id : penalized) {
    if (counts_[id] & kDone) continue;
    logits[id] = Penalized(logits[id], counts_[id], sampling);
    counts_[id] |= kDone;
  }
  for (const uint32_t id : penalized) counts_[id] = 0;
}

}  // namespace lockstep
