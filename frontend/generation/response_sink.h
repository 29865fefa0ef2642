#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "frontend/output_parsing/output_delta.h"
#include "proto/embedding.pb.h"
#include "proto/sampling.pb.h"

namespace lockstep {

struct AcceptedEvent {
  std::string request_id;
  std::string model;
  uint32_t prompt_tokens = 0;
  uint64_t seed = 0;
  std::string system_fingerprint = {};  // see SystemFingerprint
  // Where the request asked for them: the prompt as the model reads it.
  std::vector<uint32_t> prompt_token_ids = {};
  std::string prompt_text = {};
};

// Text and tokens of one choice since its last delta. Texts are whole
// characters; they can lag behind the ids.
struct DeltaEvent {
  uint32_t index = 0;
  std::string text;  // of a chat: what the model says
  std::vector<uint32_t> token_ids;
  std::vector<v1::PositionLogprobs> logprobs;
  std::vector<v1::PositionLogprobs> prompt_logprobs;
  // Of a chat: what the model thinks before, and parts of the calls it asks
  // for.
  std::string reasoning;
  std::vector<ToolCallDelta> tool_calls;
};

struct FinishEvent {
  uint32_t index = 0;
  v1::FinishReason reason = v1::FINISH_REASON_UNSPECIFIED;
  // At most one, when the reason is STOP.
  std::optional<uint32_t> stop_token_id;
  std::optional<std::string> stop_string;
  v1::Usage usage;
  uint32_t reasoning_tokens = 0;  // of the completion tokens
  // It asks for calls, all of them whole, and the reason is STOP.
  bool awaits_tools = false;
};

struct SummaryEvent {
  v1::Usage usage;
  v1::Timing timing;
  uint32_t reasoning_tokens = 0;  // of the completion tokens
  int failovers = 0;              // groups that were lost in the midst of it
};

// Where an answer goes; one for each protocol.
//
// Either OnError, or OnAccepted, then per choice deltas and one finish, or one
// embedding, then OnSummary; an OnError may take the place of any of them.
// OnSummary and OnError are terminal: the caller is done with the sink, and the
// sink may destroy the caller from within. One call at a time, from any thread.
class ResponseSink {
 public:
  virtual ~ResponseSink() = default;

  virtual void OnAccepted(AcceptedEvent event) = 0;
  virtual void OnDelta(DeltaEvent event) = 0;
  virtual void OnFinish(FinishEvent event) = 0;
  // For those who ask for one.
  virtual void OnEmbedding(v1::Embedding /*embedding*/) {}
  virtual void OnSummary(SummaryEvent event) = 0;
  // `failovers` as SummaryEvent has them.
  virtual void OnError(absl::Status status, int failovers) = 0;

  // Back-pressure: calls `resume` once, now or when the reader has caught up or
  // has gone. The caller produces nothing before.
  virtual void AwaitRoom(std::function<void()> resume) = 0;
};

}  // namespace lockstep
