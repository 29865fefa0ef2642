#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "third_party/text/lockstep_text.h"
#include "tokenizer_service/chat_template.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// A tokenizer in this process, made of the contents of a tokenizer.json and
// working exactly as Hugging Face's `tokenizers`, which is the library behind
// it. OpenTokenizer finds the contents.
class HfTokenizer : public Tokenizer {
 public:
  struct Settings {
    // The special tokens by their names in templates: bos_token, eos_token, …
    std::map<std::string, std::string> special_tokens;
    // Beside that of special_tokens["eos_token"].
    std::vector<uint32_t> more_eos_token_ids;
    std::optional<std::string> chat_template;
    // Of the model, where it has more ids than tokens.
    uint32_t least_vocabulary_size = 0;
  };

  // INVALID_ARGUMENT says what is wrong with `json` or a setting.
  static absl::StatusOr<std::unique_ptr<HfTokenizer>> Create(
      absl::string_view json, const Settings& settings);

  ~HfTokenizer() override;

  absl::StatusOr<std::vector<uint32_t>> Encode(
      absl::string_view text, bool add_special_tokens) const override;
  absl::StatusOr<std::string> Decode(absl::Span<const uint32_t> ids,
                                     bool skip_special_tokens) const override;
  absl::StatusOr<std::string> RenderChat(
      absl::string_view context_json) const override;

  const TokenizerInfo& info() const override { return info_; }
  const Vocabulary& vocabulary() const override { return *vocabulary_; }

 private:
  explicit HfTokenizer(LtTokenizer* handle) : handle_(handle) {}

  absl::Status LoadVocabulary(uint32_t least_size);
  absl::Status LoadInfo(const Settings& settings);
  absl::StatusOr<std::optional<uint32_t>> FindToken(
      const Settings& settings, const std::string& name) const;

  LtTokenizer* const handle_;  // owned
  std::unique_ptr<const Vocabulary> vocabulary_;
  std::unique_ptr<const ChatTemplate> chat_template_;  // null: none
  TokenizerInfo info_;
};

}  // namespace lockstep
