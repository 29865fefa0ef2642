#include "tests/testing/output_recorder.h"

#include <gtest/gtest.h>

#include <utility>

namespace lockstep {

void OutputRecorder::OnFirstScheduled(SequenceId id, int cached_tokens) {
  Record& record = records_[id];
  EXPECT_FALSE(record.cached_tokens.has_value()) << "scheduled first twice";
  EXPECT_FALSE(record.reason.has_value()) << "scheduled after its finish";
  record.cached_tokens = cached_tokens;
  first_scheduled_.push_back(id);
}

void OutputRecorder::OnPromptLogprobs(
    SequenceId id, std::vector<v1::PositionLogprobs> logprobs) {
  Record& record = records_[id];
  EXPECT_TRUE(record.tokens.empty()) << "prompt log-probabilities after tokens";
  EXPECT_FALSE(record.reason.has_value()) << "after its finish";
  record.prompt_logprobs.insert(record.prompt_logprobs.end(), logprobs.begin(),
                                logprobs.end());
}

void OutputRecorder::OnToken(SequenceId id, uint32_t token,
                             std::vector<v1::PositionLogprobs> logprobs) {
  Record& record = records_[id];
  EXPECT_TRUE(record.cached_tokens.has_value()) << "token before scheduled";
  EXPECT_FALSE(record.reason.has_value()) << "token after its finish";
  record.tokens.push_back(token);
  record.logprobs.insert(record.logprobs.end(), logprobs.begin(),
                         logprobs.end());
}

void OutputRecorder::OnEmbedding(SequenceId id, std::vector<float> embedding) {
  Record& record = records_[id];
  EXPECT_TRUE(record.cached_tokens.has_value()) << "embedded before scheduled";
  EXPECT_TRUE(record.tokens.empty()) << "an embedding after tokens";
  EXPECT_TRUE(record.embedding.empty()) << "embedded twice";
  EXPECT_FALSE(record.reason.has_value()) << "embedded after its finish";
  record.embedding = std::move(embedding);
}

void OutputRecorder::OnFinish(SequenceId id, v1::FinishReason reason,
                              std::optional<uint32_t> stop_token_id) {
  Record& record = records_[id];
  EXPECT_FALSE(record.reason.has_value()) << "finished twice";
  record.reason = reason;
  record.stop_token_id = stop_token_id;
  finishes_.push_back(id);
}

}  // namespace lockstep
