#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/generation/spec.h"
#include "frontend/openai/fields.h"
#include "frontend/openai/unknown_fields.h"

namespace lockstep::openai {

// How an answer is shown: all that a request says of it and that the pipeline
// does not need.
struct AnswerStyle {
  Endpoint endpoint = kChat;
  std::string id;           // "chatcmpl-…" or "cmpl-…"
  std::string model;        // as the client called it
  std::string fingerprint;  // empty: the worker has none
  int64_t created_s = 0;    // Unix time
  uint32_t n = 1;           // choices a prompt

  bool stream = false;
  bool include_usage = false;           // of a stream, in a last chunk
  bool continuous_usage_stats = false;  // and in every chunk

  bool logprobs = false;
  bool prompt_logprobs = false;
  bool return_token_ids = false;
  bool tokens_as_token_ids = false;
  bool names_tool = false;      // the one that must be called
  bool calls_function = false;  // a call is shown as its function_call
  bool echo = false;
  bool prompt_only = false;  // the answer's own tokens are not shown
  std::vector<uint32_t> stop_token_ids;
};

struct ParsedRequest {
  std::vector<GenerateSpec> specs;  // one a prompt, at least one
  AnswerStyle style;
};

// What a request's body and headers become, beside the model.
struct RequestContext {
  ServedModel model;
  std::string request_id;
  // Whether the client chose it; if so, the body's does not count.
  bool has_request_id = false;
  int64_t now_s = 0;
  UnknownFields* unknown_fields = nullptr;
};

// Checked; INVALID_ARGUMENT names the field, value and limit. Takes as long as
// the body is long. Any thread.
absl::StatusOr<ParsedRequest> ParseChatRequest(absl::string_view body,
                                               const RequestContext& context);
absl::StatusOr<ParsedRequest> ParseCompletionRequest(
    absl::string_view body, const RequestContext& context);

// How embeddings are shown.
struct EmbeddingsStyle {
  std::string id;         // "embd-…"
  std::string model;      // as the client called it
  int64_t created_s = 0;  // Unix time
  bool as_base64 = false;
};

struct EmbeddingsRequest {
  EmbedSpec spec;
  EmbeddingsStyle style;
  size_t most_bytes = 0;  // of the answer
};
absl::StatusOr<EmbeddingsRequest> ParseEmbeddingsRequest(
    absl::string_view body, const RequestContext& context);

struct TokenizeRequest {
  PromptSpec prompt;
  bool return_token_strs = false;
};
absl::StatusOr<TokenizeRequest> ParseTokenizeRequest(
    absl::string_view body, const RequestContext& context);
absl::StatusOr<DetokenizeSpec> ParseDetokenizeRequest(
    absl::string_view body, const RequestContext& context);

}  // namespace lockstep::openai
