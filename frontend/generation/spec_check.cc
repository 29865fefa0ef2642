#include "frontend/generation/spec_check.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>

#include "common/status_macros.h"
#include "frontend/generation/error_detail.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;

absl::Status CheckTextSize(absl::string_view field, size_t bytes,
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
    return WithReason(
        InvalidArgumentError(
            StrCat(field, " is ", bytes, " bytes long; at most ",
                   std::min(kMaxPromptBytes, of_context), " are allowed", why)),
        kContextLengthExceeded);
  }
  return absl::OkStatus();
}

bool IsToolNameCharacter(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-';
}

// What is cut may be longer than the context.
absl::Status CheckCutText(absl::string_view field, size_t bytes) {
  if (bytes <= kMaxPromptBytes) return absl::OkStatus();
  return InvalidArgumentError(StrCat(field, " is ", bytes,
                                     " bytes long; at most ", kMaxPromptBytes,
                                     " are allowed."));
}

absl::Status CheckText(absl::string_view field, size_t bytes, bool is_cut,
                       const ServedModel& model) {
  return is_cut && bytes > 0 ? CheckCutText(field, bytes)
                             : CheckTextSize(field, bytes, model);
}

absl::Status CheckChat(absl::string_view field, const ChatPrompt& chat,
                       bool is_cut, const ServedModel& model) {
  LOCKSTEP_RETURN_IF_ERROR(CheckNumberOfMessages(field, chat.messages.size()));
  if (chat.messages.empty()) {
    return InvalidArgumentError(
        StrCat(field, " is empty; a chat needs at least one message."));
  }
  size_t bytes = 0;
  for (const ChatTurn& turn : chat.messages) {
    if (turn.role.empty()) {
      return InvalidArgumentError(
          StrCat(field, "[", &turn - chat.messages.data(),
                 "].role is empty; templates know system, user, assistant."));
    }
    bytes += turn.role.size() + turn.content.size() + turn.reasoning.size();
    for (const ToolCall& call : turn.tool_calls) {
      bytes += call.name.size() + call.arguments.size();
    }
  }
  for (const Tool& tool : chat.tools) bytes += tool.json.size();
  return CheckText(field, bytes, is_cut, model);
}

absl::Status CheckPromptIds(absl::string_view field,
                            const std::vector<uint32_t>& ids, bool is_cut,
                            const ServedModel& model) {
  if (ids.empty()) {
    return InvalidArgumentError(
        StrCat(field, " is empty; a prompt needs at least one id."));
  }
  if (!is_cut && ids.size() >= model.max_context_tokens) {
    return WithReason(
        InvalidArgumentError(
            StrCat(field, " holds ", ids.size(), " ids; at most ",
                   model.max_context_tokens - 1, " fit, as the context of ",
                   model.name, " is ", model.max_context_tokens,
                   " tokens and the answer needs one of them.")),
        kContextLengthExceeded);
  }
  return CheckTokenIds(field, ids, model);
}

absl::Status CheckInputIds(absl::string_view field,
                           const std::vector<uint32_t>& ids, bool is_cut,
                           const ServedModel& model) {
  if (ids.empty()) {
    return InvalidArgumentError(
        StrCat(field, " is empty; an input needs at least one id."));
  }
  if (!is_cut && ids.size() > model.max_context_tokens) {
    return WithReason(
        InvalidArgumentError(StrCat(field, " holds ", ids.size(),
                                    " ids; at most ", model.max_context_tokens,
                                    " fit the context of ", model.name, ".")),
        kContextLengthExceeded);
  }
  return CheckTokenIds(field, ids, model);
}

absl::Status CheckInput(const PromptSpec& input, bool is_cut,
                        const ServedModel& model) {
  if (const auto* ids = std::get_if<TokenPrompt>(&input.prompt)) {
    return CheckInputIds(input.field, ids->ids, is_cut, model);
  }
  return CheckText(input.field, std::get<TextPrompt>(input.prompt).text.size(),
                   is_cut, model);
}

struct TextLimits {
  size_t texts;
  size_t bytes;  // of each
};

// The `field` holds some `kind`, none of them empty.
absl::Status CheckTexts(absl::string_view field, absl::string_view kind,
                        absl::Span<const std::string> texts,
                        const TextLimits& most) {
  if (texts.size() > most.texts) {
    return InvalidArgumentError(StrCat(field, " holds ", texts.size(), " ",
                                       kind, "; at most ", most.texts,
                                       " are allowed."));
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    const size_t bytes = texts[i].size();
    if (bytes == 0 || bytes > most.bytes) {
      return InvalidArgumentError(StrCat(field, "[", i, "] is ", bytes,
                                         " bytes long; it must be 1 to ",
                                         most.bytes, "."));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckModelName(absl::string_view name, const ServedModel& model) {
  if (name == model.name) return absl::OkStatus();
  constexpr size_t kShownBytes = 128;
  return WithReason(
      absl::NotFoundError(StrCat("the model \"", name.substr(0, kShownBytes),
                                 "\" is not served here; the model served is "
                                 "\"",
                                 model.name, "\".")),
      kModelNotFound);
}

absl::Status CheckGenerates(const ServedModel& model) {
  if (model.no_generation.empty()) return absl::OkStatus();
  return absl::UnimplementedError(
      StrCat("generation is not supported: ", model.no_generation));
}

absl::Status CheckNumberOfMessages(absl::string_view field, size_t number) {
  if (number <= kMaxChatMessages) return absl::OkStatus();
  return InvalidArgumentError(StrCat(field, " holds ", number,
                                     " messages; at most ", kMaxChatMessages,
                                     " are allowed."));
}

absl::Status CheckPrompt(const PromptSpec& prompt, const Truncation& truncation,
                         const ServedModel& model) {
  const bool is_cut = truncation.has_value();
  if (const auto* text = std::get_if<TextPrompt>(&prompt.prompt)) {
    return CheckText(prompt.field, text->text.size(), is_cut, model);
  }
  if (const auto* chat = std::get_if<ChatPrompt>(&prompt.prompt)) {
    return CheckChat(prompt.field, *chat, is_cut, model);
  }
  return CheckPromptIds(prompt.field, std::get<TokenPrompt>(prompt.prompt).ids,
                        is_cut, model);
}

absl::Status CheckTruncation(const Truncation& truncation,
                             const ServedModel& model) {
  const uint32_t most = model.max_context_tokens - 1;
  if (!truncation.has_value() || (*truncation >= 1 && *truncation <= most)) {
    return absl::OkStatus();
  }
  return InvalidArgumentError(StrCat(
      "truncate_prompt_tokens is ", *truncation, "; it must be from 1 to ",
      most, ", as the context of ", model.name, " is ",
      model.max_context_tokens, " tokens and the answer needs one of them."));
}

absl::Status CheckEmbedSpec(const EmbedSpec& spec) {
  const ServedModel& model = spec.each.model;
  if (!model.embedding.has_value()) {
    return absl::UnimplementedError(
        StrCat("embeddings are not supported: ", model.no_embedding));
  }
  const Truncation& truncation = spec.each.truncation;
  if (truncation.has_value() &&
      (*truncation == 0 || *truncation > model.max_context_tokens)) {
    return InvalidArgumentError(
        StrCat("truncate_prompt_tokens is ", *truncation,
               "; it must be from 1 to the context of ", model.name, ", ",
               model.max_context_tokens, " tokens."));
  }
  for (const PromptSpec& input : spec.inputs) {
    LOCKSTEP_RETURN_IF_ERROR(CheckInput(input, truncation.has_value(), model));
  }
  return absl::OkStatus();
}

size_t NumValues(const EmbedSpec& spec) {
  const size_t all = spec.each.model.embedding->dimensions();
  const v1::EmbeddingParams params =
      spec.each.embedding.value_or(v1::EmbeddingParams());
  // What is too many is the worker's to refuse.
  return params.has_dimensions() ? std::min<size_t>(all, params.dimensions())
                                 : all;
}

absl::Status CheckToolNames(absl::string_view field,
                            absl::Span<const std::string> names) {
  if (names.size() > kMaxTools) {
    return InvalidArgumentError(StrCat(field, " holds ", names.size(),
                                       " tools; at most ", kMaxTools,
                                       " are allowed."));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    const bool is_known =
        std::find(names.begin(), names.begin() + i, name) != names.begin() + i;
    const bool is_good =
        !name.empty() && name.size() <= kMaxToolNameBytes &&
        std::all_of(name.begin(), name.end(), IsToolNameCharacter);
    if (is_good && !is_known) continue;
    const std::string shown =
        absl::Utf8SafeCHexEscape(name.substr(0, kMaxToolNameBytes));
    return InvalidArgumentError(
        StrCat(field, "[", i, "] is named \"", shown,
               is_good ? "\", as one before it is."
                       : StrCat("\"; a name is 1 to ", kMaxToolNameBytes,
                                " characters of [A-Za-z0-9_.-].")));
  }
  return absl::OkStatus();
}

absl::Status CheckTokenIds(absl::string_view field,
                           absl::Span<const uint32_t> ids,
                           const ServedModel& model) {
  const auto bad = std::find_if(ids.begin(), ids.end(), [&](uint32_t id) {
    return id >= model.vocabulary_size;
  });
  if (bad == ids.end()) return absl::OkStatus();
  return InvalidArgumentError(StrCat(
      field, "[", bad - ids.begin(), "] is ", *bad,
      "; it must be below the vocabulary size ", model.vocabulary_size, "."));
}

absl::Status CheckDetokenize(absl::string_view field,
                             const DetokenizeSpec& spec,
                             const ServedModel& model) {
  if (spec.ids.size() > kMaxDecodedIds) {
    return InvalidArgumentError(StrCat(field, " holds ", spec.ids.size(),
                                       " ids; at most ", kMaxDecodedIds,
                                       " are allowed."));
  }
  return CheckTokenIds(field, spec.ids, model);
}

absl::Status CheckStop(absl::Span<const std::string> stop) {
  return CheckTexts("stop", "strings", stop,
                    {kMaxStopStrings, kMaxStopStringBytes});
}

absl::Status CheckBadWords(absl::Span<const std::string> words) {
  return CheckTexts("bad_words", "words", words,
                    {kMaxBadWords, kMaxBadWordBytes});
}

}  // namespace lockstep
