#pragma once

#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// A tokenizer without a model: the id of a byte is the byte, and three special
// tokens follow. So a test can read ids, and make half characters.
//
//   FakeTokenizer tokenizer;
//   tokenizer.Encode("hi<eos>", true);   // {kBos, 'h', 'i', kEos}
//   tokenizer.RenderChat(R"({"messages": [{"role": "user", "content": "hi"}],
//                            "add_generation_prompt": true})");
//   // "<bos>[user]hi[assistant]"
//
// Its template shows tools and calls by their names, "{f g}", and behind a tool
// its parameters; its model writes calls as Hermes does and reasoning as
// <think>…</think>.
//
// Thread-safe, as every Tokenizer.
class FakeTokenizer : public Tokenizer {
 public:
  static constexpr uint32_t kBos = 256;   // <bos>
  static constexpr uint32_t kEos = 257;   // <eos>
  static constexpr uint32_t kTool = 258;  // <tool>
  static constexpr uint32_t kVocabularySize = 259;

  explicit FakeTokenizer(bool has_chat_template = true);

  absl::StatusOr<std::vector<uint32_t>> Encode(
      absl::string_view text, bool add_special_tokens) const override;
  absl::StatusOr<std::string> Decode(absl::Span<const uint32_t> ids,
                                     bool skip_special_tokens) const override;

  // A message of the role "raise" makes the template raise its content.
  absl::StatusOr<std::string> RenderChat(
      absl::string_view context_json) const override;

  const TokenizerInfo& info() const override { return info_; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  TokenizerInfo info_;
  Vocabulary vocabulary_;
};

}  // namespace lockstep
