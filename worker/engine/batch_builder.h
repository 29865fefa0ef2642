#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "worker/core/step_plan.h"
#include "worker/models/decoder.h"

namespace lockstep {

// A row of logits of a step, and what it is for.
struct LogitsRow {
  int span = 0;      // of the plan
  int position = 0;  // of the token that it follows
  // Scores the prompt token at position + 1; else chooses the sequence's next.
  bool is_prompt = false;
};

// Turns a plan into the decoder's input. Spans keep the plan's order; a span's
// rows of logits are its prompt positions, then the one it samples from. The
// buffers are reused; nothing is allocated in a step. A token that is not known
// yet, by span.token_from, has the id 0.
//
//   builder.Build(plan);
//   decoder.Forward(builder.input(), …);
class BatchBuilder {
 public:
  struct Limits {
    int page_size = 0;
    int tokens = 0;  // of a step
    int sequences = 0;
    int logits_rows = 0;
  };

  explicit BatchBuilder(const Limits& limits);

  // A plan beyond the limits, or a sequence without pages for its span, is a
  // CHECK: the scheduler has the same limits. Valid as long as the plan is.
  void Build(const StepPlan& plan);

  DecoderInput input() const;

  // One entry for each of input().logits_tokens.
  absl::Span<const LogitsRow> rows() const { return rows_; }

 private:
  void AddSpan(int index, const SequenceSpan& span);
  void AddRow(const LogitsRow& row, int token);

  const Limits limits_;
  std::vector<uint32_t> token_ids_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> sequence_of_;
  std::vector<const int32_t*> page_tables_;
  std::vector<int32_t> logits_tokens_;
  std::vector<LogitsRow> rows_;
};

}  // namespace lockstep
