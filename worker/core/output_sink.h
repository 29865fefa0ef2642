#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/sampling.pb.h"
#include "worker/core/sequence.h"

namespace lockstep {

// Where the scheduler tells what happened to sequences, on the step thread. The
// leader's routes it to streams; followers have one that ignores it.
//
// Per sequence: OnFirstScheduled at most once, then tokens or one embedding,
// then exactly one OnFinish; nothing after it.
class OutputSink {
 public:
  virtual ~OutputSink() = default;

  // The first step that computes this sequence was planned; `cached_tokens` of
  // its prompt were found in the prefix cache.
  virtual void OnFirstScheduled(SequenceId id, int cached_tokens) = 0;

  // Of prompt tokens from the second on, in order, as chunks complete.
  virtual void OnPromptLogprobs(SequenceId id,
                                std::vector<v1::PositionLogprobs> logprobs) = 0;

  // `logprobs` has one entry if the request asked for them, else none.
  virtual void OnToken(SequenceId id, uint32_t token,
                       std::vector<v1::PositionLogprobs> logprobs) = 0;

  // Nobody asks for one from most sinks.
  virtual void OnEmbedding(SequenceId /*id*/,
                           std::vector<float> /*embedding*/) {}

  // stop_token_id: the id that ended it, which OnToken did not get.
  virtual void OnFinish(SequenceId id, v1::FinishReason reason,
                        std::optional<uint32_t> stop_token_id) = 0;
};

}  // namespace lockstep
