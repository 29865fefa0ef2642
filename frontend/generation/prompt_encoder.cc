#include "frontend/generation/prompt_encoder.h"

#include <absl/strings/str_cat.h>

#include "common/status_macros.h"
#include "common/utf8.h"
#include "frontend/generation/chat_renderer.h"
#include "frontend/generation/error_detail.h"

namespace lockstep {
namespace {

absl::StatusOr<std::vector<uint32_t>> Encode(const PromptSpec& prompt,
                                             const std::string& text,
                                             const Tokenizer& tokenizer) {
  auto ids = tokenizer.Encode(text, prompt.add_special_tokens);
  if (!ids.ok()) {
    return absl::Status(ids.status().code(),
                        absl::StrCat(prompt.field, " cannot be encoded: ",
                                     ids.status().message()));
  }
  return ids;
}

// Of a chat whose template writes BOS, and that is to have special tokens
// added.
void DropSecondBos(const Tokenizer& tokenizer, std::vector<uint32_t>* ids) {
  const auto& bos = tokenizer.info().bos_token_id;
  const bool has_two = bos.has_value() && ids->size() >= 2 &&
                       (*ids)[0] == *bos && (*ids)[1] == *bos;
  if (has_two) ids->erase(ids->begin());
}

}  // namespace

absl::StatusOr<EncodedPrompt> EncodePrompt(const PromptSpec& prompt,
                                           const ChatFormat& format,
                                           const Tokenizer& tokenizer) {
  EncodedPrompt result;
  if (const auto* tokens = std::get_if<TokenPrompt>(&prompt.prompt)) {
    result.token_ids = tokens->ids;
    return result;
  }
  if (const auto* chat = std::get_if<ChatPrompt>(&prompt.prompt)) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        result.rendered, RenderChat(prompt.field, *chat, format, tokenizer));
  }
  const std::string& text = result.rendered.has_value()
                                ? *result.rendered
                                : std::get<TextPrompt>(prompt.prompt).text;
  LOCKSTEP_ASSIGN_OR_RETURN(result.token_ids, Encode(prompt, text, tokenizer));
  if (result.rendered.has_value()) DropSecondBos(tokenizer, &result.token_ids);
  return result;
}

std::vector<std::string> TokenStrings(const std::vector<uint32_t>& ids,
                                      const Vocabulary& vocabulary) {
  std::vector<std::string> strings;
  strings.reserve(ids.size());
  for (const uint32_t id : ids) {
    strings.push_back(
        id < vocabulary.size() ? RepairUtf8(vocabulary.token(id).bytes) : "");
  }
  return strings;
}

void Truncate(const Truncation& truncation, const Tokenizer& tokenizer,
              std::vector<uint32_t>* token_ids) {
  if (!truncation.has_value() || token_ids->size() <= *truncation) return;
  const std::optional<uint32_t>& bos = tokenizer.info().bos_token_id;
  const bool has_bos = bos.has_value() && token_ids->front() == *bos;
  token_ids->erase(token_ids->begin(), token_ids->end() - *truncation);
  if (has_bos && *truncation > 1) token_ids->front() = *bos;
}

absl::Status CheckPromptTokens(const GenerateSpec& spec, size_t num_tokens) {
  const uint32_t context = spec.model.max_context_tokens;
  if (num_tokens == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        spec.prompt.field, " holds no token; a prompt needs at least one."));
  }
  if (spec.embedding.has_value()) {
    if (num_tokens <= context) return absl::OkStatus();
    return WithReason(
        absl::InvalidArgumentError(absl::StrCat(
            spec.prompt.field, " is ", num_tokens, " tokens long; at most ",
            context, " fit the context of ", spec.model.name,
            "; cut it with truncate_prompt_tokens.")),
        kContextLengthExceeded);
  }
  if (num_tokens >= context) {
    return WithReason(
        absl::InvalidArgumentError(absl::StrCat(
            spec.prompt.field, " is ", num_tokens, " tokens long; at most ",
            context - 1, " fit, as the context of ", spec.model.name, " is ",
            context, " tokens and the answer needs one of them.")),
        kContextLengthExceeded);
  }
  if (spec.sampling.max_tokens() > context - num_tokens) {
    return WithReason(
        absl::InvalidArgumentError(absl::StrCat(
            spec.prompt.field, " is ", num_tokens, " tokens long and ",
            spec.sampling.max_tokens(),
            " more are asked for; together they must fit the context of ",
            spec.model.name, ", ", context, " tokens.")),
        kContextLengthExceeded);
  }
  return absl::OkStatus();
}

}  // namespace lockstep
