#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer_service/vocabulary.h"

namespace lockstep {

// The longest text to encode, and the longest context_json.
inline constexpr size_t kMaxTextBytes = 16 << 20;
// The most ids that a service decodes at once: more than any model's context.
inline constexpr int kMaxDecodedIds = 1 << 20;

struct TokenizerInfo {
  // Ids are below it. Some may have no token: models pad their vocabularies.
  uint32_t vocabulary_size = 0;
  std::optional<uint32_t> bos_token_id;
  std::vector<uint32_t> eos_token_ids;
  // The text of it, from which one can tell how the model writes.
  std::optional<std::string> chat_template;
};

// Text to token ids and back, and chat messages to text: in this process
// (HfTokenizer) or answered by the tokenizer service (RemoteTokenizer).
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto ids, tokenizer.Encode("Hello", true));
//   LOCKSTEP_ASSIGN_OR_RETURN(auto text, tokenizer.Decode(ids, false));
//
// Immutable; any thread, several at once. Calls block for as long as the text
// is long, so they do not belong on a gRPC callback thread. What the input can
// cause is INVALID_ARGUMENT with a sentence; a fault of the implementation is
// INTERNAL. Nothing aborts the process.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // `text` is valid UTF-8, at most kMaxTextBytes. add_special_tokens: what the
  // tokenizer adds by itself, such as BOS. Special tokens written in the text
  // are recognized.
  virtual absl::StatusOr<std::vector<uint32_t>> Encode(
      absl::string_view text, bool add_special_tokens) const = 0;

  // Ids that make no valid UTF-8 show as U+FFFD. An id outside the vocabulary
  // is INVALID_ARGUMENT.
  virtual absl::StatusOr<std::string> Decode(
      absl::Span<const uint32_t> ids, bool skip_special_tokens) const = 0;

  // Renders the model's chat template. context_json is an object of the
  // template's variables (messages, add_generation_prompt, …); bos_token and
  // eos_token are added. A template that raises is INVALID_ARGUMENT with its
  // words. FAILED_PRECONDITION without a template.
  virtual absl::StatusOr<std::string> RenderChat(
      absl::string_view context_json) const = 0;

  virtual const TokenizerInfo& info() const = 0;

  // What Decode is made of; IncrementalDecoder works on it. Its size is
  // info().vocabulary_size.
  virtual const Vocabulary& vocabulary() const = 0;
};

}  // namespace lockstep
