#include "worker/core/host_part.h"

namespace lockstep {

bool HasPenalties(const v1::ResolvedSampling& sampling) {
  return sampling.repetition_penalty() != 1 ||
         sampling.presence_penalty() != 0 || sampling.frequency_penalty() != 0;
}

bool MasksStopIds(const Sequence& sequence) {
  return sequence.num_output_tokens() < sequence.sampling().min_tokens();
}

bool KeepsIdsOut(const v1::ResolvedSampling& sampling) {
  return !sampling.allowed_token_ids().empty() ||
         !sampling.bad_word_sizes().empty();
}

bool ChangesLogits(const Sequence& sequence) {
  const v1::ResolvedSampling& sampling = sequence.sampling();
  return !sampling.bias_token_ids().empty() || HasPenalties(sampling) ||
         !sampling.bad_word_sizes().empty() || MasksStopIds(sequence);
}

bool TakesLargest(const Sequence& sequence) {
  return sequence.sampling().temperature() == 0 &&
         !KeepsIdsOut(sequence.sampling()) && !ChangesLogits(sequence);
}

bool SamplesWithHost(const SequenceSpan& span) {
  const v1::ResolvedSampling& sampling = span.sequence->sampling();
  size_t adjustments = sampling.bias_token_ids_size();
  if (sampling.min_tokens() > 0) adjustments += sampling.stop_token_ids_size();
  return span.samples &&
         (span.sequence->request().grammar() != 0 || HasPenalties(sampling) ||
          KeepsIdsOut(sampling) || adjustments > kMostDeviceAdjustments);
}

bool NeedsHost(const SequenceSpan& span) {
  return span.sequence->is_embedded() || SamplesWithHost(span);
}

}  // namespace lockstep
