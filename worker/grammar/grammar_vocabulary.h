#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "proto/grammar.pb.h"
#include "third_party/text/lockstep_text.h"
#include "worker/grammar/grammar_matcher.h"
#include "worker/grammar/token_bytes.h"

namespace lockstep {

inline constexpr size_t kMaxGrammarBytes = 512 << 10;

// INVALID_ARGUMENT for a grammar that has no kind or is too long, before
// anything is made of it; `field` is its client's name of it.
absl::Status CheckGrammar(absl::string_view field, const v1::Grammar& grammar);

// A model's vocabulary, made ready to compile grammars for it.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(
//       auto vocabulary, GrammarVocabulary::Create(tokens, vocab_size, eos));
//   LOCKSTEP_ASSIGN_OR_RETURN(GrammarMatcher compiled,
//                             vocabulary->Compile(grammar));
//
// Immutable; any thread, several at once.
class GrammarVocabulary {
 public:
  // `vocab_size` is the model's, which may have more ids than its tokenizer.
  // FAILED_PRECONDITION where no id ends an answer. Takes up to a second.
  static absl::StatusOr<std::unique_ptr<GrammarVocabulary>> Create(
      TokenBytes tokens, size_t vocab_size,
      absl::Span<const uint32_t> eos_token_ids);

  size_t size() const { return size_; }

  // A matcher at its beginning. INVALID_ARGUMENT says what is wrong with the
  // grammar; so it does where compiling takes more than the library's limits,
  // which are of work, not of time.
  absl::StatusOr<GrammarMatcher> Compile(const v1::Grammar& grammar) const;

 private:
  GrammarVocabulary(LtGrammarVocabulary* vocabulary, size_t size)
      : vocabulary_(vocabulary, &lt_grammar_vocabulary_free), size_(size) {}

  const std::unique_ptr<LtGrammarVocabulary,
                        decltype(&lt_grammar_vocabulary_free)>
      vocabulary_;
  const size_t size_;
};

}  // namespace lockstep
