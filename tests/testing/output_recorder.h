#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "worker/core/output_sink.h"

namespace lockstep {

// Keeps what a scheduler says of each sequence; a test failure where it breaks
// the order that OutputSink promises.
class OutputRecorder final : public OutputSink {
 public:
  struct Record {
    std::optional<int> cached_tokens;  // set by OnFirstScheduled
    std::vector<uint32_t> tokens;
    std::vector<v1::PositionLogprobs> logprobs;
    std::vector<v1::PositionLogprobs> prompt_logprobs;
    std::vector<float> embedding;
    std::optional<v1::FinishReason> reason;
    std::optional<uint32_t> stop_token_id;
  };

  void OnFirstScheduled(SequenceId id, int cached_tokens) override;
  void OnPromptLogprobs(SequenceId id,
                        std::vector<v1::PositionLogprobs> logprobs) override;
  void OnToken(SequenceId id, uint32_t token,
               std::vector<v1::PositionLogprobs> logprobs) override;
  void OnEmbedding(SequenceId id, std::vector<float> embedding) override;
  void OnFinish(SequenceId id, v1::FinishReason reason,
                std::optional<uint32_t> stop_token_id) override;

  // An empty one for a sequence that nothing was said of.
  const Record& of(SequenceId id) { return records_[id]; }
  bool finished(SequenceId id) { return of(id).reason.has_value(); }

  // In the order of the calls.
  const std::vector<SequenceId>& first_scheduled() const {
    return first_scheduled_;
  }
  const std::vector<SequenceId>& finishes() const { return finishes_; }

 private:
  std::map<SequenceId, Record> records_;
  std::vector<SequenceId> first_scheduled_;
  std::vector<SequenceId> finishes_;
};

}  // namespace lockstep
