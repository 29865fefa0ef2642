#include "worker/scheduler/next_span.h"

#include <algorithm>

namespace lockstep {

SequenceSpan NextSpan(const ScheduledSequence& scheduled, int max_tokens,
                      int max_rows) {
  const Sequence& sequence = scheduled.sequence;
  const int begin = scheduled.expected_computed();
  const int last = scheduled.expected_tokens() - 1;
  int end = std::min(begin + max_tokens, last + 1);

  const int wanted_end = scheduled.prompt_logits_end();
  const int wanted_begin =
      std::min(std::max(begin, scheduled.prompt_logits_done), wanted_end);
  if (wanted_end - wanted_begin > max_rows) {
    end = std::min(end, wanted_begin + max_rows);
  }
  const int num_wanted = std::max(0, std::min(end, wanted_end) - wanted_begin);
  const bool embeds = sequence.is_embedded();
  if (end > last && num_wanted == max_rows && !embeds) end = last;

  SequenceSpan span;
  span.sequence = &sequence;
  span.begin = begin;
  span.count = end - begin;
  if (scheduled.in_flight.tokens > 0) span.token_from = scheduled.last_span;
  span.samples = end > last && !embeds;
  span.embeds = end > last && embeds;
  if (num_wanted > 0) {
    span.prompt_logits_begin = wanted_begin;
    span.prompt_logits_end = wanted_begin + num_wanted;
  }
  return span;
}

}  // namespace lockstep
