#include "worker/engine/batch_builder.h"

#include <glog/logging.h>

#include <cstddef>

#include "worker/core/sequence.h"

namespace lockstep {

BatchBuilder::BatchBuilder(const Limits& limits) : limits_(limits) {
  token_ids_.reserve(limits.tokens);
  positions_.reserve(limits.tokens);
  sequence_of_.reserve(limits.tokens);
  page_tables_.reserve(limits.sequences);
  logits_tokens_.reserve(limits.logits_rows);
  rows_.reserve(limits.logits_rows);
}

void BatchBuilder::Build(const StepPlan& plan) {
  token_ids_.clear();
  positions_.clear();
  sequence_of_.clear();
  page_tables_.clear();
  logits_tokens_.clear();
  rows_.clear();
  CHECK_LE(plan.spans.size(), limits_.sequences);
  for (int i = 0; i < plan.spans.size(); ++i) AddSpan(i, plan.spans[i]);
  CHECK_LE(token_ids_.size(), limits_.tokens);
  CHECK_LE(rows_.size(), limits_.logits_rows);
}

void BatchBuilder::AddSpan(int index, const SequenceSpan& span) {
  const Sequence& sequence = *span.sequence;
  const int end = span.begin + span.count;
  // Of a token that the step before samples the id is not known.
  const int known = span.token_from < 0 ? end : end - 1;
  CHECK_LE(known, sequence.num_tokens());
  CHECK_LE(end, sequence.pages().size() * limits_.page_size);

  const int first_token = static_cast<int>(token_ids_.size());
  for (int position = span.begin; position < end; ++position) {
    token_ids_.push_back(position < known ? sequence.tokens()[position] : 0);
    positions_.push_back(position);
    sequence_of_.push_back(index);
  }
  page_tables_.push_back(sequence.pages().data());

  for (int position = span.prompt_logits_begin;
       position < span.prompt_logits_end; ++position) {
    AddRow({.span = index, .position = position, .is_prompt = true},
           first_token + position - span.begin);
  }
  if (!span.samples) return;
  AddRow({.span = index, .position = end - 1, .is_prompt = false},
         first_token + span.count - 1);
}

void BatchBuilder::AddRow(const LogitsRow& row, int token) {
  rows_.push_back(row);
  logits_tokens_.push_back(token);
}

DecoderInput BatchBuilder::input() const {
  DecoderInput input;
  input.token_ids = token_ids_;
  input.batch.num_tokens = static_cast<int>(token_ids_.size());
  input.batch.positions = positions_.data();
  input.batch.sequence_of = sequence_of_.data();
  input.batch.page_tables = page_tables_.data();
  input.logits_tokens = logits_tokens_;
  return input;
}

}  // namespace lockstep
