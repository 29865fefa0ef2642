#pragma once

#include <optional>
#include <vector>

#include "worker/core/output_sink.h"

namespace lockstep {

// A follower's sink: only the leader answers.
class SilentSink final : public OutputSink {
 public:
  void OnFirstScheduled(SequenceId, int) override {}
  void OnPromptLogprobs(SequenceId,
                        std::vector<v1::PositionLogprobs>) override {}
  void OnToken(SequenceId, uint32_t,
               std::vector<v1::PositionLogprobs>) override {}
  void OnFinish(SequenceId, v1::FinishReason,
                std::optional<uint32_t>) override {}
};

}  // namespace lockstep
