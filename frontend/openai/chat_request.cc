#include <limits>
#include <utility>

#include "common/request_id.h"
#include "common/status_macros.h"
#include "frontend/generation/spec_check.h"
#include "frontend/openai/constraint_fields.h"
#include "frontend/openai/json_body.h"
#include "frontend/openai/messages.h"
#include "frontend/openai/request.h"
#include "frontend/openai/sampling_fields.h"

namespace lockstep::openai {
namespace {

constexpr int64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();
constexpr int64_t kMaxLogprobs = 20;

void ReadLogprobs(FieldReader* reader, GenerateSpec* spec, AnswerStyle* style) {
  style->logprobs = reader->Bool("logprobs").value_or(false);
  const auto top = reader->Integer("top_logprobs", 0, kMaxLogprobs);
  if (style->logprobs) {
    spec->sampling.set_logprobs(top.value_or(0));
  } else if (top.value_or(0) > 0) {
    reader->Fail("top_logprobs", "left out unless logprobs is true");
  }
}

}  // namespace

absl::StatusOr<ParsedRequest> ParseChatRequest(absl::string_view body,
                                               const RequestContext& context) {
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseBody(body));
  LOCKSTEP_RETURN_IF_ERROR(RefuseFields(json, kChat, context.unknown_fields));
  FieldReader reader(json);
  GenerateSpec spec;
  AnswerStyle style;
  style.endpoint = kChat;
  LOCKSTEP_RETURN_IF_ERROR(ReadCommonFields(context, &reader, &spec, &style));
  ReadLogprobs(&reader, &spec, &style);
  const auto deprecated = reader.Integer("max_tokens", 1, kMaxUint32);
  const auto most = reader.Integer("max_completion_tokens", 1, kMaxUint32);
  if (most.has_value() || deprecated.has_value()) {
    spec.sampling.set_max_tokens(most.has_value() ? *most : *deprecated);
  }
  spec.parallel_tool_calls = reader.Bool("parallel_tool_calls").value_or(true);
  spec.include_reasoning = reader.Bool("include_reasoning").value_or(true);
  LOCKSTEP_RETURN_IF_ERROR(ReadTruncation(context, &reader, &spec));
  LOCKSTEP_ASSIGN_OR_RETURN(spec.prompt,
                            ReadChat(json, body, context.unknown_fields));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckPrompt(spec.prompt, spec.truncation, context.model));
  LOCKSTEP_RETURN_IF_ERROR(
      ReadConstraint(json, body, context.unknown_fields, &spec));
  style.names_tool =
      !std::get<ChatPrompt>(spec.prompt.prompt).required_tool.empty();
  // Of functions, as tools were called before, an answer calls one.
  style.calls_function = reader.Find("tools") == nullptr &&
                         (reader.Find("functions") != nullptr ||
                          reader.Find("function_call") != nullptr);
  if (style.calls_function) spec.parallel_tool_calls = false;
  style.id = MakeRequestId("chatcmpl");
  spec.worker_request_id = style.id;
  ParsedRequest parsed;
  parsed.specs.push_back(std::move(spec));
  parsed.style = std::move(style);
  return parsed;
}

}  // namespace lockstep::openai
