#pragma once

#include <cstdint>
#include <vector>

#include "proto/sampling.pb.h"

namespace lockstep {

// In place of a token: the sequence's grammar takes more than the limits.
inline constexpr uint32_t kNoToken = UINT32_MAX;

// What one span of a plan produced.
struct SpanResult {
  uint32_t token = 0;  // or kNoToken; meaningful where the span samples
  // Of `token`, if the request asked for log-probabilities; else zero or one.
  std::vector<v1::PositionLogprobs> logprobs;
  // Of prompt tokens prompt_logits_begin + 1 … prompt_logits_end.
  std::vector<v1::PositionLogprobs> prompt_logprobs;
  std::vector<float> embedding;  // meaningful where the span embeds
  // A row of its logits had no finite number, or its embedding has one that is
  // none: nothing else here means anything, and the sequence ends.
  bool is_finite = true;
};

// One entry a span, in the plan's order.
struct StepResult {
  std::vector<SpanResult> spans;
};

}  // namespace lockstep
