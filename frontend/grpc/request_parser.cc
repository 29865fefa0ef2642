#include "frontend/grpc/request_parser.h"

#include <absl/strings/str_cat.h>

#include <string>
#include <utility>

#include "common/request_id.h"
#include "common/status_macros.h"
#include "common/unknown_fields.h"
#include "frontend/generation/spec_check.h"
#include "frontend/grpc/chat_prompt.h"
#include "frontend/grpc/structured_output.h"

namespace lockstep {
namespace {

constexpr char kMessages[] = "chat.messages";

template <typename Request>
absl::Status CheckModel(const Request& request, const ServedModel& model) {
  if (!request.has_model()) return absl::OkStatus();
  return CheckModelName(request.model(), model);
}

// First of all, as whatever walks over the messages takes long.
template <typename Request>
absl::Status CheckSize(const Request& request) {
  return CheckNumberOfMessages(kMessages, request.chat().messages_size());
}

PromptSpec FromText(const std::string& text) {
  return {TextPrompt{text}, /*add_special_tokens=*/true, "text"};
}

absl::StatusOr<PromptSpec> FromChat(const v1::ChatPrompt& chat) {
  LOCKSTEP_ASSIGN_OR_RETURN(ChatPrompt prompt, ToChatPrompt(chat));
  return PromptSpec{std::move(prompt), /*add_special_tokens=*/false, kMessages};
}

PromptSpec FromTokenIds(const v1::TokenIds& token_ids) {
  return {TokenPrompt{{token_ids.ids().begin(), token_ids.ids().end()}},
          /*add_special_tokens=*/false, "token_ids.ids"};
}

// The client's name of a request, or one that is made for it.
template <typename Request>
absl::Status ReadRequestId(const Request& request, absl::string_view prefix,
                           GenerateSpec* spec) {
  if (!request.has_request_id()) {
    spec->request_id = MakeRequestId(std::string(prefix));
    spec->worker_request_id = spec->request_id;
    return absl::OkStatus();
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckRequestId("request_id", request.request_id()));
  spec->request_id = request.request_id();
  spec->worker_request_id = MakeRequestId(spec->request_id);
  return absl::OkStatus();
}

absl::StatusOr<PromptSpec> FromInput(const v1::EmbedInput& input, int index) {
  PromptSpec prompt;
  switch (input.input_case()) {
    case v1::EmbedInput::kText:
      prompt = FromText(input.text());
      break;
    case v1::EmbedInput::kTokenIds:
      prompt = FromTokenIds(input.token_ids());
      break;
    case v1::EmbedInput::INPUT_NOT_SET:
      return absl::InvalidArgumentError(
          absl::StrCat("inputs[", index, "] is empty; set text or token_ids."));
  }
  prompt.field = absl::StrCat("inputs[", index, "].", prompt.field);
  return prompt;
}

absl::Status CheckNumberOfInputs(size_t number) {
  if (number >= 1 && number <= kMaxEmbedInputs) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("inputs holds ", number,
                                                 " inputs; it must hold 1 to ",
                                                 kMaxEmbedInputs, "."));
}

absl::StatusOr<PromptSpec> ParsePrompt(const v1::GenerateRequest& request) {
  switch (request.prompt_case()) {
    case v1::GenerateRequest::kText:
      return FromText(request.text());
    case v1::GenerateRequest::kChat:
      return FromChat(request.chat());
    case v1::GenerateRequest::kTokenIds:
      return FromTokenIds(request.token_ids());
    case v1::GenerateRequest::PROMPT_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "there is no prompt; set one of text, chat and token_ids.");
}

}  // namespace

absl::StatusOr<GenerateSpec> ParseGenerateRequest(
    const v1::GenerateRequest& request, const ServedModel& model) {
  LOCKSTEP_RETURN_IF_ERROR(CheckSize(request));
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnknownFields(request));
  LOCKSTEP_RETURN_IF_ERROR(CheckModel(request, model));
  LOCKSTEP_RETURN_IF_ERROR(CheckGenerates(model));
  GenerateSpec spec;
  LOCKSTEP_RETURN_IF_ERROR(ReadRequestId(request, "gen", &spec));
  spec.stop.assign(request.stop().begin(), request.stop().end());
  LOCKSTEP_RETURN_IF_ERROR(CheckStop(spec.stop));
  LOCKSTEP_ASSIGN_OR_RETURN(spec.prompt, ParsePrompt(request));
  LOCKSTEP_RETURN_IF_ERROR(ReadToolChoice(request, &spec));
  LOCKSTEP_RETURN_IF_ERROR(ReadStructuredOutput(request, &spec));
  if (request.has_truncate_prompt_tokens()) {
    spec.truncation = request.truncate_prompt_tokens();
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckTruncation(spec.truncation, model));
  LOCKSTEP_RETURN_IF_ERROR(CheckPrompt(spec.prompt, spec.truncation, model));
  spec.bad_words.assign(request.bad_words().begin(), request.bad_words().end());
  LOCKSTEP_RETURN_IF_ERROR(CheckBadWords(spec.bad_words));
  spec.model = model;
  spec.sampling = request.sampling();
  spec.priority = request.priority();
  spec.parallel_tool_calls =
      !request.has_parallel_tool_calls() || request.parallel_tool_calls();
  spec.include_reasoning =
      !request.has_include_reasoning() || request.include_reasoning();
  spec.include_stop_str_in_output = request.include_stop_str_in_output();
  spec.skip_special_tokens =
      !request.has_skip_special_tokens() || request.skip_special_tokens();
  if (request.has_add_special_tokens()) {
    spec.prompt.add_special_tokens = request.add_special_tokens();
  }
  spec.return_prompt = request.return_prompt();
  return spec;
}

absl::StatusOr<EmbedSpec> ParseEmbedRequest(const v1::EmbedRequest& request,
                                            const ServedModel& model) {
  LOCKSTEP_RETURN_IF_ERROR(CheckNumberOfInputs(request.inputs_size()));
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnknownFields(request));
  LOCKSTEP_RETURN_IF_ERROR(CheckModel(request, model));
  EmbedSpec spec;
  GenerateSpec& each = spec.each;
  LOCKSTEP_RETURN_IF_ERROR(ReadRequestId(request, "embd", &each));
  each.model = model;
  each.embedding = request.embedding();
  each.priority = request.priority();
  if (request.has_truncate_prompt_tokens()) {
    each.truncation = request.truncate_prompt_tokens();
  }
  const bool adds_special_tokens =
      !request.has_add_special_tokens() || request.add_special_tokens();
  for (int i = 0; i < request.inputs_size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(PromptSpec input,
                              FromInput(request.inputs(i), i));
    input.add_special_tokens &= adds_special_tokens;
    spec.inputs.push_back(std::move(input));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckEmbedSpec(spec));
  return spec;
}

absl::StatusOr<PromptSpec> ParseTokenizeRequest(
    const v1::TokenizeRequest& request, const ServedModel& model) {
  LOCKSTEP_RETURN_IF_ERROR(CheckSize(request));
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnknownFields(request));
  LOCKSTEP_RETURN_IF_ERROR(CheckModel(request, model));
  PromptSpec spec;
  switch (request.prompt_case()) {
    case v1::TokenizeRequest::kText:
      spec = FromText(request.text());
      break;
    case v1::TokenizeRequest::kChat: {
      LOCKSTEP_ASSIGN_OR_RETURN(spec, FromChat(request.chat()));
      break;
    }
    case v1::TokenizeRequest::PROMPT_NOT_SET:
      return absl::InvalidArgumentError(
          "there is nothing to tokenize; set text or chat.");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckPrompt(spec, /*truncation=*/{}, model));
  if (request.has_add_special_tokens()) {
    spec.add_special_tokens = request.add_special_tokens();
  }
  return spec;
}

absl::StatusOr<DetokenizeSpec> ParseDetokenizeRequest(
    const v1::DetokenizeRequest& request, const ServedModel& model) {
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnknownFields(request));
  LOCKSTEP_RETURN_IF_ERROR(CheckModel(request, model));
  DetokenizeSpec spec = {
      {request.token_ids().begin(), request.token_ids().end()},
      !request.has_skip_special_tokens() || request.skip_special_tokens()};
  LOCKSTEP_RETURN_IF_ERROR(CheckDetokenize("token_ids", spec, model));
  return spec;
}

}  // namespace lockstep
