#include "worker/core/host_part.h"

namespace lockstep {

bool HasPenalties(const v1::ResolvedSampling& sampling) {
  return sampling.repetition_penalty() != 1 ||
         sampling.presence_penalty() != 0 || sampling.frequency_penalty() != 0;
}

bool MasksStopIds(const Sequence& sequence) {
  return sequence.num_output_tokens() < sequence.sampling().min_tokens();
}

bool ChangesLogits(const Sequence& sequence) {
  const v1::ResolvedSampling& sampling = sequence.sampling();
  return !sampling.bias_token_ids().empty() || HasPenalties(sampling) ||
         MasksStopIds(sequence);
}

bool TakesLargest(const Sequence& sequence) {
  return sequence.sampling().temperature() == 0 && !ChangesLogits(sequence);
}

bool SamplesOnHost(const SequenceSpan& span) {
  const Sequence& sequence = *span.sequence;
  return span.samples &&
         (!TakesLargest(sequence) || sequence.request().grammar() != 0 ||
          sequence.sampling().logprobs_plus_one() != 0);
}

bool NeedsHost(const SequenceSpan& span) {
  return span.sequence->is_embedded() || SamplesOnHost(span) ||
         span.prompt_logits_begin < span.prompt_logits_end;
}

}  // namespace lockstep
