#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "worker/cache/prefix_cache.h"
#include "worker/core/sequence.h"
#include "worker/scheduler/scheduler_options.h"

namespace lockstep {

// A sequence and what the scheduler alone knows of it.
struct ScheduledSequence {
  enum class State {
    kHeld,     // waits for a sibling to compute the prompt they share
    kWaiting,  // holds no pages
    kRunning,
  };

  ScheduledSequence(SequenceId id,
                    std::shared_ptr<const v1::AddRequest> request,
                    uint64_t arrival_step)
      : sequence(id, std::move(request)),
        due_step(static_cast<int64_t>(arrival_step) +
                 int64_t{kStepsPerPriority} * sequence.request().priority()) {}

  SequenceId id() const { return sequence.id(); }

  // What sequence.num_computed() and num_tokens() are once the steps in flight
  // are committed, unless that ends it.
  int expected_computed() const {
    return sequence.num_computed() + in_flight.positions;
  }
  int expected_tokens() const {
    return sequence.num_tokens() + in_flight.tokens;
  }

  // Running, and computes one token in the next step.
  bool decodes() const { return has_sampled || in_flight.tokens > 0; }

  // Prompt positions below it have logits that the request wants.
  int prompt_logits_end() const {
    const bool wanted =
        sequence.request().sampling().prompt_logprobs_plus_one() > 0;
    // All choices have the same; the first one reports them.
    return wanted && id().choice == 0 ? sequence.num_prompt_tokens() - 1 : 0;
  }

  // So many tokens, at most, may come from the prefix cache, which has no
  // hidden states: the last one's are needed, those of prompt positions not
  // reported yet, and for a mean all of them.
  int max_cached_tokens() const {
    if (sequence.request().embedding().pooling() == v1::MEAN) return 0;
    const int limit = sequence.num_tokens() - 1;
    return prompt_logits_done < prompt_logits_end()
               ? std::min(limit, prompt_logits_done)
               : limit;
  }

  // Of the steps in flight.
  struct InFlight {
    int positions = 0;  // that they compute
    int tokens = 0;     // that they sample
  };

  Sequence sequence;
  const int64_t due_step;  // see ByPrecedence
  State state = State::kHeld;
  InFlight in_flight;
  uint64_t last_step = 0;      // with a span of this sequence; 0: none yet
  int last_span = 0;           // of that step
  bool has_sampled = false;    // since it runs
  bool was_scheduled = false;  // ever
  PrefixHold prefix;           // the first pages of sequence.pages()
  // Set once pages were refused: see SequencePages::Acquire.
  std::optional<int64_t> acquirable_from;
  int prompt_logits_done = 0;  // positions below it are reported
  int digested_pages = 0;      // of sequence.pages(), covered by the digest
};

// Tokens of a sequence that has used up max_tokens or the context.
inline int LongestLength(const Sequence& sequence, int max_context) {
  const int64_t wanted =
      int64_t{sequence.num_prompt_tokens()} + sequence.sampling().max_tokens();
  return static_cast<int>(std::min<int64_t>(wanted, max_context));
}

inline bool HasFullLength(const Sequence& sequence, int max_context) {
  return sequence.num_tokens() >= LongestLength(sequence, max_context);
}

// Whether it will have, by what the steps in flight sample.
inline bool ExpectsFullLength(const ScheduledSequence& scheduled,
                              int max_context) {
  return scheduled.expected_tokens() >=
         LongestLength(scheduled.sequence, max_context);
}

// Who goes first: the one that is due first, then earlier request, then lower
// choice. A request is due kStepsPerPriority steps after its arrival for each
// unit of its priority, before it for a negative one. So waiting makes up for
// priority, and yet the order of two sequences never changes: no queue is ever
// sorted again.
//
// The same order serves the queue, the batch and, backwards, preemption: the
// newest and least urgent goes first, and it finds its old place at the front
// of those of its priority.
//
// Nobody starves. From the step on in which a most urgent request would be due
// later, no newcomer goes ahead of a request. Of those ahead of it, the first
// ends within (max_sequences + 1) * max_context steps: while it waits nobody
// else is admitted, and of the running ones the first computes a token in every
// step and is never preempted; and then so does it. (With two steps in flight
// it may have to wait every second step, for pages of one in flight.)
struct ByPrecedence {
  bool operator()(const ScheduledSequence* a,
                  const ScheduledSequence* b) const {
    return a->due_step != b->due_step ? a->due_step < b->due_step
                                      : a->id() < b->id();
  }
};

}  // namespace lockstep
