#include "frontend/generation/request_parser.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/types/span.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>

#include "common/status_macros.h"
#include "common/unknown_fields.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;

template <typename Request>
absl::Status CheckModel(const Request& request, const ServedModel& model) {
  if (!request.has_model() || request.model() == model.name) {
    return absl::OkStatus();
  }
  constexpr size_t kShownBytes = 128;
  return absl::NotFoundError(StrCat(
      "the model \"", request.model().substr(0, kShownBytes),
      "\" is not served here; the model served is \"", model.name, "\"."));
}

absl::Status CheckRequestId(const std::string& id) {
  if (id.empty()) {
    return InvalidArgumentError(
        "request_id is empty; leave it out to have one made.");
  }
  if (id.size() > kMaxRequestIdBytes) {
    return InvalidArgumentError(StrCat("request_id is ", id.size(),
                                       " bytes long; at most ",
                                       kMaxRequestIdBytes, " are allowed."));
  }
  const auto is_allowed = [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  };
  const auto bad = std::find_if_not(id.begin(), id.end(), is_allowed);
  if (bad != id.end()) {
    return InvalidArgumentError(
        StrCat("request_id has a character outside [A-Za-z0-9._-] at byte ",
               bad - id.begin(), "."));
  }
  return absl::OkStatus();
}

absl::Status CheckTextSize(const char* field, size_t bytes,
                           const ServedModel& model) {
  if (bytes == 0) {
    return InvalidArgumentError(
        StrCat(field, " is empty; a prompt needs at least one character."));
  }
  const size_t of_context = kMaxBytesPerToken * model.max_context_tokens;
  if (bytes > std::min(kMaxPromptBytes, of_context)) {
    const std::string why =
        of_context < kMaxPromptBytes
            ? StrCat(", ", kMaxBytesPerToken, " for each of the ",
                     model.max_context_tokens, " tokens of the context.")
            : ".";
    return InvalidArgumentError(
        StrCat(field, " is ", bytes, " bytes long; at most ",
               std::min(kMaxPromptBytes, of_context), " are allowed", why));
  }
  return absl::OkStatus();
}

absl::StatusOr<PromptSpec> ParseText(const std::string& text,
                                     const ServedModel& model) {
  LOCKSTEP_RETURN_IF_ERROR(CheckTextSize("text", text.size(), model));
  return PromptSpec{TextPrompt{text}, /*add_special_tokens=*/true};
}

// First of all, as whatever walks over the messages takes long.
template <typename Request>
absl::Status CheckNumberOfMessages(const Request& request) {
  const int number = request.chat().messages_size();
  if (number <= kMaxChatMessages) return absl::OkStatus();
  return InvalidArgumentError(StrCat("chat.messages holds ", number,
                                     " messages; at most ", kMaxChatMessages,
                                     " are allowed."));
}

absl::StatusOr<PromptSpec> ParseChat(const v1::ChatPrompt& chat,
                                     const ServedModel& model) {
  if (chat.messages().empty()) {
    return InvalidArgumentError(
        "chat.messages is empty; a chat needs at least one message.");
  }
  ChatPrompt prompt;
  if (chat.has_add_generation_prompt()) {
    prompt.add_generation_prompt = chat.add_generation_prompt();
  }
  size_t bytes = 0;
  for (const v1::ChatMessage& message : chat.messages()) {
    if (message.role().empty()) {
      return InvalidArgumentError(
          StrCat("chat.messages[", prompt.messages.size(),
                 "].role is empty; templates know system, user, assistant."));
    }
    bytes += message.role().size() + message.content().size();
    prompt.messages.push_back({message.role(), message.content()});
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckTextSize("chat.messages", bytes, model));
  return PromptSpec{std::move(prompt), /*add_special_tokens=*/false};
}

absl::Status CheckTokenIds(const char* field, absl::Span<const uint32_t> ids,
                           const ServedModel& model) {
  const auto bad = std::find_if(ids.begin(), ids.end(), [&](uint32_t id) {
    return id >= model.vocabulary_size;
  });
  if (bad == ids.end()) return absl::OkStatus();
  return InvalidArgumentError(StrCat(
      field, "[", bad - ids.begin(), "] is ", *bad,
      "; it must be below the vocabulary size ", model.vocabulary_size, "."));
}

absl::StatusOr<PromptSpec> ParseTokenIds(const v1::TokenIds& token_ids,
                                         const ServedModel& model) {
  if (token_ids.ids().empty()) {
    return InvalidArgumentError(
        "token_ids.ids is empty; a prompt needs at least one id.");
  }
  if (token_ids.ids_size() >= static_cast<int64_t>(model.max_context_tokens)) {
    return InvalidArgumentError(
        StrCat("token_ids.ids holds ", token_ids.ids_size(), " ids; at most ",
               model.max_context_tokens - 1, " fit, as the context of ",
               model.name, " is ", model.max_context_tokens,
               " tokens and the answer needs one of them."));
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckTokenIds("token_ids.ids", token_ids.ids(), model));
  return PromptSpec{
      TokenPrompt{{token_ids.ids().begin(), token_ids.ids().end()}},
      /*add_special_tokens=*/false};
}

absl::StatusOr<PromptSpec> ParsePrompt(const v1::GenerateRequest& request,
                                       const ServedModel& model) {
  switch (request.prompt_case()) {
    case v1::GenerateRequest::kText:
      return ParseText(request.text(), model);
    case v1::GenerateRequest::kChat:
      return ParseChat(request.chat(), model);
    case v1::GenerateRequest::kTokenIds:
      return ParseTokenIds(request.token_ids(), model);
    case v1::GenerateRequest::PROMPT_NOT_SET:
      break;
  }
  return InvalidArgumentError(
      "there is no prompt; set one of text, chat and token_ids.");
}

absl::Status CheckStop(const v1::GenerateRequest& request) {
  if (request.stop_size() > static_cast<int>(kMaxStopStrings)) {
    return InvalidArgumentError(StrCat("stop holds ", request.stop_size(),
                                       " strings; at most ", kMaxStopStrings,
                                       " are allowed."));
  }
  for (int i = 0; i < request.stop_size(); ++i) {
    const size_t bytes = request.stop(i).size();
    if (bytes == 0 || bytes > kMaxStopStringBytes) {
      return InvalidArgumentError(StrCat("stop[", i, "] is ", bytes,
                                         " bytes long; it must be 1 to ",
                                         kMaxStopStringBytes, "."));
    }
  }
  return absl::OkStatus();
}

std::string RandomHex() {
  std::random_device random;
  return absl::StrFormat("%08x%08x", random(), random());
}

}  // namespace

absl::StatusOr<GenerateSpec> ParseGenerateRequest(
    const v1::GenerateRequest& request, const ServedModel& model) {
  LOCKSTEP_RETURN_IF_ERROR(CheckNumberOfMessages(request));
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnknownFields(request));
  LOCKSTEP_RETURN_IF_ERROR(CheckModel(request, model));
  if (request.has_request_id()) {
    LOCKSTEP_RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckStop(request));
  GenerateSpec spec;
  LOCKSTEP_ASSIGN_OR_RETURN(spec.prompt, ParsePrompt(request, model));
  spec.model = model;
  spec.request_id =
      request.has_request_id() ? request.request_id() : "gen-" + RandomHex();
  constexpr size_t kRoomForHex = 17;
  spec.worker_request_id =
      request.has_request_id()
          ? StrCat(spec.request_id.substr(0, kMaxRequestIdBytes - kRoomForHex),
                   "-", RandomHex())
          : spec.request_id;
  spec.sampling = request.sampling();
  spec.priority = request.priority();
  spec.stop.assign(request.stop().begin(), request.stop().end());
  spec.include_stop_str_in_output = request.include_stop_str_in_output();
  spec.skip_special_tokens =
      !request.has_skip_special_tokens() || request.skip_special_tokens();
  return spec;
}

absl::StatusOr<PromptSpec> ParseTokenizeRequest(
    const v1::TokenizeRequest& request, const ServedModel& model) {
  LOCKSTEP_RETURN_IF_ERROR(CheckNumberOfMessages(request));
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnknownFields(request));
  LOCKSTEP_RETURN_IF_ERROR(CheckModel(request, model));
  PromptSpec spec;
  switch (request.prompt_case()) {
    case v1::TokenizeRequest::kText: {
      LOCKSTEP_ASSIGN_OR_RETURN(spec, ParseText(request.text(), model));
      break;
    }
    case v1::TokenizeRequest::kChat: {
      LOCKSTEP_ASSIGN_OR_RETURN(spec, ParseChat(request.chat(), model));
      break;
    }
    case v1::TokenizeRequest::PROMPT_NOT_SET:
      return InvalidArgumentError(
          "there is nothing to tokenize; set text or chat.");
  }
  if (request.has_add_special_tokens()) {
    spec.add_special_tokens = request.add_special_tokens();
  }
  return spec;
}

absl::StatusOr<DetokenizeSpec> ParseDetokenizeRequest(
    const v1::DetokenizeRequest& request, const ServedModel& model) {
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnknownFields(request));
  LOCKSTEP_RETURN_IF_ERROR(CheckModel(request, model));
  if (request.token_ids_size() > kMaxDecodedIds) {
    return InvalidArgumentError(
        StrCat("token_ids holds ", request.token_ids_size(), " ids; at most ",
               kMaxDecodedIds, " are allowed."));
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckTokenIds("token_ids", request.token_ids(), model));
  return DetokenizeSpec{
      {request.token_ids().begin(), request.token_ids().end()},
      !request.has_skip_special_tokens() || request.skip_special_tokens()};
}

}  // namespace lockstep
