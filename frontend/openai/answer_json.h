#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "frontend/generation/response_sink.h"
#include "frontend/openai/request.h"
#include "proto/embedding.pb.h"

namespace lockstep::openai {

using Json = nlohmann::ordered_json;

// "stop", "length" or "tool_calls".
const char* FinishReasonName(const AnswerStyle& style,
                             const FinishEvent& finish);

// vLLM's stop_reason: the stop string or the stop id that ended the choice,
// null at the model's own end.
Json StopReason(const AnswerStyle& style, const FinishEvent& finish);

// Of several prompts, each counted once.
struct UsageSums {
  uint32_t prompt_tokens = 0;
  uint32_t cached_tokens = 0;
  uint32_t completion_tokens = 0;
  uint32_t reasoning_tokens = 0;  // of them
};
Json UsageJson(const UsageSums& sums);

// {"id", "object", "created", "model", "system_fingerprint"}: what an answer,
// and each chunk of a stream, begins with.
Json Envelope(const AnswerStyle& style);

// Adds a call, or a part of one, as a `message` and, of a stream, a `delta` has
// it: to its list, or as the one that it makes.
void AddCall(const AnswerStyle& style, const ToolCallDelta& call,
             Json* message);

// Appends a vector as answers have it: a list of numbers, each the shortest
// that reads as this very float, or the base64 of the floats' bytes,
// little-endian.
void AppendEmbedding(const v1::Embedding& embedding, bool as_base64,
                     std::string* json);

// Bytes that are no UTF-8 become U+FFFD.
std::string Dump(const Json& json);

}  // namespace lockstep::openai
