#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "third_party/text/lockstep_text.h"

namespace lockstep {

// Words of a mask over so many ids: a bit each, that of id 0 the lowest of the
// first word.
constexpr size_t NumMaskWords(size_t vocab_size) {
  return (vocab_size + 31) / 32;
}

// A grammar and the output that has followed it so far: what may come next. A
// pure function of the grammar, the vocabulary and the ids.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(GrammarMatcher matcher, compiled.Clone());
//   LOCKSTEP_RETURN_IF_ERROR(matcher.FillMask(mask));
//   LOCKSTEP_ASSIGN_OR_RETURN(size_t consumed, matcher.Consume({id}));
//
// Made by GrammarVocabulary::Compile. One thread at a time. The library's own
// scratch is allocated and freed within the calls.
class GrammarMatcher {
 public:
  explicit GrammarMatcher(LtMatcher* matcher)
      : matcher_(matcher, &lt_matcher_free) {}

  // At the same place. Shares nothing.
  absl::StatusOr<GrammarMatcher> Clone() const;

  // Follows `ids` up to the first that the grammar does not allow; returns how
  // many were followed.
  absl::StatusOr<size_t> Consume(absl::Span<const uint32_t> ids);

  // Which ids may come next, end-of-text ids among them where the output is
  // complete; never none. INVALID_ARGUMENT where finding out takes more than
  // the library's limits: it does so wherever the same ids have been consumed
  // and the same masks filled.
  // REQUIRES: mask.size() is NumMaskWords of the vocabulary.
  absl::Status FillMask(absl::Span<uint32_t> mask);

  // Whether the output so far is complete.
  absl::StatusOr<bool> IsAccepting();

 private:
  std::unique_ptr<LtMatcher, decltype(&lt_matcher_free)> matcher_;
};

}  // namespace lockstep
