#include <utility>

#include "common/status_macros.h"
#include "frontend/generation/spec_check.h"
#include "frontend/openai/json_body.h"
#include "frontend/openai/messages.h"
#include "frontend/openai/request.h"
#include "frontend/openai/sampling_fields.h"

namespace lockstep::openai {
namespace {

// Of messages alone.
constexpr const char* kOfChats[] = {
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "documents",
    "add_generation_prompt",
    "chat_template_kwargs",
    "continue_final_message",
    "reasoning_effort"};

absl::StatusOr<PromptSpec> ReadText(FieldReader* reader) {
  for (const char* name : kOfChats) {
    if (reader->Find(name) == nullptr) continue;
    reader->Fail(name, "left out where there are no messages");
  }
  PromptSpec prompt;
  const auto text = reader->String("prompt");
  if (!text.has_value()) reader->Fail("prompt", "a string; or set messages");
  prompt.add_special_tokens = reader->Bool("add_special_tokens").value_or(true);
  LOCKSTEP_RETURN_IF_ERROR(reader->status());
  prompt.prompt = TextPrompt{*text};
  prompt.field = "prompt";
  return prompt;
}

}  // namespace

absl::StatusOr<TokenizeRequest> ParseTokenizeRequest(
    absl::string_view body, const RequestContext& context) {
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseBody(body));
  LOCKSTEP_RETURN_IF_ERROR(
      RefuseFields(json, kTokenize, context.unknown_fields));
  FieldReader reader(json);
  AnswerStyle style;
  LOCKSTEP_RETURN_IF_ERROR(ReadModel(context, &reader, &style));
  TokenizeRequest request;
  request.return_token_strs = reader.Bool("return_token_strs").value_or(false);
  if (reader.Find("messages") == nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(request.prompt, ReadText(&reader));
  } else {
    if (reader.Find("prompt") != nullptr) {
      reader.Fail("prompt", "left out where there are messages");
    }
    LOCKSTEP_RETURN_IF_ERROR(reader.status());
    LOCKSTEP_ASSIGN_OR_RETURN(request.prompt,
                              ReadChat(json, body, context.unknown_fields));
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckPrompt(request.prompt, /*truncation=*/{}, context.model));
  return request;
}

absl::StatusOr<DetokenizeSpec> ParseDetokenizeRequest(
    absl::string_view body, const RequestContext& context) {
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseBody(body));
  LOCKSTEP_RETURN_IF_ERROR(
      RefuseFields(json, kDetokenize, context.unknown_fields));
  FieldReader reader(json);
  AnswerStyle style;
  LOCKSTEP_RETURN_IF_ERROR(ReadModel(context, &reader, &style));
  if (reader.Find("tokens") == nullptr) {
    reader.Fail("tokens", "a list of token ids");
  }
  DetokenizeSpec spec;
  spec.ids = reader.TokenIds("tokens");
  spec.skip_special_tokens = false;  // all of what the ids stand for
  LOCKSTEP_RETURN_IF_ERROR(reader.status());
  LOCKSTEP_RETURN_IF_ERROR(CheckDetokenize("tokens", spec, context.model));
  return spec;
}

}  // namespace lockstep::openai
