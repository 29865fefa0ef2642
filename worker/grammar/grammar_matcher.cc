#include "worker/grammar/grammar_matcher.h"

#include "common/status_macros.h"
#include "third_party/text/text_library.h"

namespace lockstep {

absl::StatusOr<GrammarMatcher> GrammarMatcher::Clone() const {
  RustBytes error;
  LtMatcher* clone = nullptr;
  LOCKSTEP_RETURN_IF_ERROR(
      ToStatus(lt_matcher_clone(matcher_.get(), &clone, &error), error));
  return GrammarMatcher(clone);
}

absl::StatusOr<size_t> GrammarMatcher::Consume(absl::Span<const uint32_t> ids) {
  RustBytes error;
  size_t num_consumed = 0;
  LOCKSTEP_RETURN_IF_ERROR(
      ToStatus(lt_matcher_consume(matcher_.get(), ids.data(), ids.size(),
                                  &num_consumed, &error),
               error));
  return num_consumed;
}

absl::Status GrammarMatcher::FillMask(absl::Span<uint32_t> mask) {
  RustBytes error;
  return ToStatus(
      lt_matcher_mask(matcher_.get(), mask.data(), mask.size(), &error), error);
}

absl::StatusOr<bool> GrammarMatcher::IsAccepting() {
  RustBytes error;
  bool is_accepting = false;
  LOCKSTEP_RETURN_IF_ERROR(ToStatus(
      lt_matcher_is_accepting(matcher_.get(), &is_accepting, &error), error));
  return is_accepting;
}

}  // namespace lockstep
