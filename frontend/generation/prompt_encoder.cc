#include "frontend/generation/prompt_encoder.h"

#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/status_macros.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// The template's variables, named as Hugging Face names them.
std::string ChatContext(const ChatPrompt& chat) {
  Json messages = Json::array();
  for (const ChatTurn& turn : chat.messages) {
    messages.push_back({{"role", turn.role}, {"content", turn.content}});
  }
  const Json context = {{"messages", std::move(messages)},
                        {"add_generation_prompt", chat.add_generation_prompt}};
  return context.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const char* FieldOf(const PromptSpec& prompt) {
  constexpr const char* kFields[] = {"text", "chat", "token_ids"};
  return kFields[prompt.prompt.index()];
}

absl::StatusOr<std::string> Render(const ChatPrompt& chat,
                                   const Tokenizer& tokenizer) {
  if (!tokenizer.info().has_chat_template) {
    return absl::InvalidArgumentError(
        "chat cannot be rendered: the model has no chat template; send text or "
        "token_ids.");
  }
  const std::string context = ChatContext(chat);
  if (context.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "chat.messages is ", context.size(),
        " bytes long as JSON, where some characters take more; at most ",
        kMaxTextBytes, " are allowed."));
  }
  auto text = tokenizer.RenderChat(context);
  if (!text.ok()) {
    return absl::Status(text.status().code(),
                        absl::StrCat("chat.messages cannot be rendered: ",
                                     text.status().message()));
  }
  return text;
}

absl::StatusOr<std::vector<uint32_t>> Encode(const PromptSpec& prompt,
                                             const std::string& text,
                                             const Tokenizer& tokenizer) {
  auto ids = tokenizer.Encode(text, prompt.add_special_tokens);
  if (!ids.ok()) {
    return absl::Status(ids.status().code(),
                        absl::StrCat(FieldOf(prompt), " cannot be encoded: ",
                                     ids.status().message()));
  }
  return ids;
}

}  // namespace

absl::StatusOr<EncodedPrompt> EncodePrompt(const PromptSpec& prompt,
                                           const Tokenizer& tokenizer) {
  EncodedPrompt result;
  if (const auto* tokens = std::get_if<TokenPrompt>(&prompt.prompt)) {
    result.token_ids = tokens->ids;
    return result;
  }
  if (const auto* chat = std::get_if<ChatPrompt>(&prompt.prompt)) {
    LOCKSTEP_ASSIGN_OR_RETURN(result.rendered, Render(*chat, tokenizer));
  }
  const std::string& text = result.rendered.has_value()
                                ? *result.rendered
                                : std::get<TextPrompt>(prompt.prompt).text;
  LOCKSTEP_ASSIGN_OR_RETURN(result.token_ids, Encode(prompt, text, tokenizer));
  return result;
}

absl::Status CheckPromptTokens(const PromptSpec& prompt, size_t num_tokens,
                               const ServedModel& model) {
  if (num_tokens == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        FieldOf(prompt), " holds no token; a prompt needs at least one."));
  }
  if (num_tokens >= model.max_context_tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        FieldOf(prompt), " is ", num_tokens, " tokens long; at most ",
        model.max_context_tokens - 1, " fit, as the context of ", model.name,
        " is ", model.max_context_tokens,
        " tokens and the answer needs one of them."));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
