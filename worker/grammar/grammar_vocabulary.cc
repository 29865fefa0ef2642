#include "worker/grammar/grammar_vocabulary.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "third_party/text/text_library.h"

namespace lockstep {
namespace {

struct Source {
  const char* name;
  uint32_t kind;
  const std::string& text;
};

// REQUIRES: it has a kind.
Source SourceOf(const v1::Grammar& grammar) {
  switch (grammar.kind_case()) {
    case v1::Grammar::kRegex:
      return {"regex", LT_REGEX, grammar.regex()};
    case v1::Grammar::kLark:
      return {"lark", LT_LARK, grammar.lark()};
    default:
      return {"json_schema", LT_JSON_SCHEMA, grammar.json_schema()};
  }
}

}  // namespace

absl::Status CheckGrammar(absl::string_view field, const v1::Grammar& grammar) {
  if (grammar.kind_case() == v1::Grammar::KIND_NOT_SET) {
    return absl::InvalidArgumentError(absl::StrCat(
        field, " is empty; it must have a json_schema, a regex or a lark."));
  }
  const Source source = SourceOf(grammar);
  if (source.text.size() <= kMaxGrammarBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, ".", source.name, " is ", source.text.size(),
      " bytes long; at most ", kMaxGrammarBytes, " are allowed."));
}

absl::StatusOr<std::unique_ptr<GrammarVocabulary>> GrammarVocabulary::Create(
    TokenBytes tokens, size_t vocab_size,
    absl::Span<const uint32_t> eos_token_ids) {
  // A model's files may name ids that its logits do not have.
  std::vector<uint32_t> eos_ids;
  std::copy_if(eos_token_ids.begin(), eos_token_ids.end(),
               std::back_inserter(eos_ids),
               [&](uint32_t id) { return id < vocab_size; });
  if (eos_ids.empty()) {
    return absl::FailedPreconditionError(
        "grammars need an end-of-text id, and the model names none.");
  }
  tokens.Resize(vocab_size);
  RustBytes error;
  LtGrammarVocabulary* vocabulary = nullptr;
  LOCKSTEP_RETURN_IF_ERROR(ToStatus(
      lt_grammar_vocabulary_new(
          reinterpret_cast<const uint8_t*>(tokens.bytes.data()),
          tokens.bytes.size(), tokens.ends.data(), tokens.kinds.data(),
          tokens.ends.size(), eos_ids.data(), eos_ids.size(), &vocabulary,
          &error),
      error));
  return std::unique_ptr<GrammarVocabulary>(
      new GrammarVocabulary(vocabulary, vocab_size));
}

absl::StatusOr<GrammarMatcher> GrammarVocabulary::Compile(
    const v1::Grammar& grammar) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckGrammar("grammar", grammar));
  const Source source = SourceOf(grammar);
  RustBytes error;
  LtMatcher* matcher = nullptr;
  const absl::Status compiled = ToStatus(
      lt_matcher_new(vocabulary_.get(), source.kind,
                     reinterpret_cast<const uint8_t*>(source.text.data()),
                     source.text.size(), &matcher, &error),
      error);
  if (compiled.ok()) return GrammarMatcher(matcher);
  return absl::Status(
      compiled.code(),
      absl::StrCat("grammar.", source.name, " is refused: ",
                   absl::StripSuffix(compiled.message(), "."), "."));
}

}  // namespace lockstep
