#include "tokenizer_service/hf_tokenizer.h"

#include <absl/algorithm/container.h>
#include <absl/strings/str_cat.h>

#include "common/status_macros.h"
#include "tokenizer_service/text_check.h"
#include "third_party/text/text_library.h"

namespace lockstep {
namespace {

class RustVocabulary : public LtVocabulary {
 public:
  RustVocabulary() : LtVocabulary{} {}
  ~RustVocabulary() { lt_vocabulary_free(this); }
};

Vocabulary::Kind KindOf(uint8_t kind) {
  switch (kind & ~LT_TOKEN_SPECIAL) {
    case LT_TOKEN_TEXT:
      return Vocabulary::Kind::kText;
    case LT_TOKEN_BYTE:
      return Vocabulary::Kind::kByte;
    default:
      return Vocabulary::Kind::kNone;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<HfTokenizer>> HfTokenizer::Create(
    absl::string_view json, const Settings& settings) {
  LtTokenizer* handle = nullptr;
  RustBytes error;
  LOCKSTEP_RETURN_IF_ERROR(ToStatus(
      lt_tokenizer_new(Data(json), json.size(), &handle, &error), error));
  std::unique_ptr<HfTokenizer> result(new HfTokenizer(handle));
  LOCKSTEP_RETURN_IF_ERROR(
      result->LoadVocabulary(settings.least_vocabulary_size));
  LOCKSTEP_RETURN_IF_ERROR(result->LoadInfo(settings));
  if (settings.chat_template.has_value()) {
    LOCKSTEP_ASSIGN_OR_RETURN(result->chat_template_,
                              ChatTemplate::Compile(*settings.chat_template,
                                                    settings.special_tokens));
    result->info_.chat_template = settings.chat_template;
  }
  return result;
}

HfTokenizer::~HfTokenizer() { lt_tokenizer_free(handle_); }

absl::Status HfTokenizer::LoadVocabulary(uint32_t least_size) {
  RustVocabulary tokens;
  RustBytes error;
  LOCKSTEP_RETURN_IF_ERROR(
      ToStatus(lt_vocabulary(handle_, &tokens, &error), error));
  auto vocabulary = std::make_unique<Vocabulary>(
      tokens.byte_fallback ? Vocabulary::Join::kByteFallback
                           : Vocabulary::Join::kByteLevel,
      tokens.strip_leading_spaces);
  const absl::string_view bytes(
      reinterpret_cast<const char*>(tokens.bytes.data), tokens.bytes.size);
  size_t begin = 0;
  for (size_t id = 0; id < tokens.ends.size; ++id) {
    const size_t end = tokens.ends.data[id];
    const uint8_t kind = tokens.kinds.data[id];
    vocabulary->Add(bytes.substr(begin, end - begin), KindOf(kind),
                    (kind & LT_TOKEN_SPECIAL) != 0);
    begin = end;
  }
  while (vocabulary->size() < least_size) {
    vocabulary->Add("", Vocabulary::Kind::kNone);
  }
  info_.vocabulary_size = vocabulary->size();
  vocabulary_ = std::move(vocabulary);
  return absl::OkStatus();
}

absl::Status HfTokenizer::LoadInfo(const Settings& settings) {
  LOCKSTEP_ASSIGN_OR_RETURN(info_.bos_token_id,
                            FindToken(settings, "bos_token"));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<uint32_t> eos,
                            FindToken(settings, "eos_token"));
  if (eos.has_value()) info_.eos_token_ids.push_back(*eos);
  for (const uint32_t id : settings.more_eos_token_ids) {
    if (id >= info_.vocabulary_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the end-of-text id ", id, " is outside the vocabulary of ",
          info_.vocabulary_size, " ids."));
    }
    if (!absl::c_linear_search(info_.eos_token_ids, id)) {
      info_.eos_token_ids.push_back(id);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<uint32_t>> HfTokenizer::FindToken(
    const Settings& settings, const std::string& name) const {
  const auto token = settings.special_tokens.find(name);
  if (token == settings.special_tokens.end()) return std::nullopt;
  uint32_t id = 0;
  bool found = false;
  RustBytes error;
  LOCKSTEP_RETURN_IF_ERROR(
      ToStatus(lt_token_id(handle_, Data(token->second), token->second.size(),
                           &id, &found, &error),
               error));
  if (!found) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the ", name, " \"", token->second, "\" is not in the vocabulary."));
  }
  return id;
}

absl::StatusOr<std::vector<uint32_t>> HfTokenizer::Encode(
    absl::string_view text, bool add_special_tokens) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckText("text", text));
  RustIds ids;
  RustBytes error;
  LOCKSTEP_RETURN_IF_ERROR(ToStatus(lt_encode(handle_, Data(text), text.size(),
                                              add_special_tokens, &ids, &error),
                                    error));
  return std::vector<uint32_t>(ids.span().begin(), ids.span().end());
}

absl::StatusOr<std::string> HfTokenizer::Decode(
    absl::Span<const uint32_t> ids, bool skip_special_tokens) const {
  LOCKSTEP_RETURN_IF_ERROR(vocabulary_->Check(ids));
  RustBytes text, error;
  LOCKSTEP_RETURN_IF_ERROR(
      ToStatus(lt_decode(handle_, ids.data(), ids.size(), skip_special_tokens,
                         &text, &error),
               error));
  return text.ToString();
}

absl::StatusOr<std::string> HfTokenizer::RenderChat(
    absl::string_view context_json) const {
  if (chat_template_ == nullptr) {
    return absl::FailedPreconditionError(
        "the model has no chat template; send text instead of messages.");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckText("context_json", context_json));
  return chat_template_->Render(context_json);
}

}  // namespace lockstep
