#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "worker/core/sequence.h"
#include "worker/grammar/grammar_matcher.h"

namespace lockstep {

// Where a sequence is in its grammar: what the engine keeps of it from the
// first token that it chooses. Preemption leaves it as it is; a sequence that
// is resumed, here or by another group, follows the tokens it has first.
//
//   SequenceGrammar grammar(*std::move(matcher), vocab_size);
//   LOCKSTEP_ASSIGN_OR_RETURN(auto mask, grammar.Mask(sequence));
class SequenceGrammar final : public SequenceState {
 public:
  SequenceGrammar(GrammarMatcher matcher, size_t vocab_size);

  // What may follow the sequence's output: NumMaskWords, which stay as they are
  // until the next call. INVALID_ARGUMENT where the grammar does not allow that
  // output, or finding out exceeds the limits.
  absl::StatusOr<absl::Span<const uint32_t>> Mask(const Sequence& sequence);

 private:
  GrammarMatcher matcher_;
  std::vector<uint32_t> mask_;
  size_t num_consumed_ = 0;  // of the output
};

}  // namespace lockstep
