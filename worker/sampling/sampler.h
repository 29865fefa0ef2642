#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "proto/sampling.pb.h"
#include "worker/core/sequence.h"

namespace lockstep {

// Chooses tokens from logits. A pure function of the logits, the sequence's
// tokens and its parameters: the noise of an output token is a counter-based
// generator keyed by (seed, choice, position in the output), so every rank
// draws the same and a preempted or resumed sequence goes on as it would have.
//
// Order: bias; repetition, presence and frequency penalties; min_tokens masks
// the stop ids; greedy, or: temperature, top-k, top-p, min-p, then the draw.
// NaN logits rank below all others.
//
// Holds scratch for one thread; make one a thread. Allocates nothing after the
// first call.
class Sampler {
 public:
  explicit Sampler(int vocab_size);

  // logits [vocab_size] fp32 of the sequence's last token.
  uint32_t Sample(absl::Span<const float> logits, const Sequence& sequence);

  // Of `token` and the `k` most probable ids, from the logits as they are
  // (log-softmax in double).
  v1::PositionLogprobs Logprobs(absl::Span<const float> logits, uint32_t token,
                                int k);

 private:
  std::vector<float> logits_;     // [vocab_size] adjusted
  std::vector<uint32_t> order_;   // candidate ids
  std::vector<double> weights_;   // of the candidates
  std::vector<uint32_t> counts_;  // [vocab_size], zero between calls
};

}  // namespace lockstep
