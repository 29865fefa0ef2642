#include "worker/grammar/sequence_grammar.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "common/status_macros.h"

namespace lockstep {

SequenceGrammar::SequenceGrammar(GrammarMatcher matcher, size_t vocab_size)
    : matcher_(std::move(matcher)), mask_(NumMaskWords(vocab_size)) {}

absl::StatusOr<absl::Span<const uint32_t>> SequenceGrammar::Mask(
    const Sequence& sequence) {
  const absl::Span<const uint32_t> news =
      sequence.output().subspan(num_consumed_);
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t consumed, matcher_.Consume(news));
  num_consumed_ += consumed;
  if (consumed < news.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the grammar does not allow output token ", num_consumed_,
                     ", id ", news[consumed], "."));
  }
  LOCKSTEP_RETURN_IF_ERROR(matcher_.FillMask(absl::MakeSpan(mask_)));
  return mask_;
}

}  // namespace lockstep
