#include "worker/engine/row_sampler.h"

#include "proto/group.pb.h"
#include "worker/core/sequence.h"

namespace lockstep {

RowSampler::RowSampler(int vocab_size, kernels::ThreadPool* pool)
    : vocab_size_(vocab_size),
      pool_(pool),
      take_rows_([this](int worker) { TakeRows(worker); }) {
  for (int i = 0; i < pool->size(); ++i) {
    scratch_.push_back({Sampler(vocab_size), FloatBuffer(vocab_size)});
  }
}

void RowSampler::Sample(const StepPlan& plan, absl::Span<const LogitsRow> rows,
                        const Decoder& decoder, StepResult* result) {
  result->spans.resize(plan.spans.size());
  for (size_t i = 0; i < plan.spans.size(); ++i) {
    const SequenceSpan& span = plan.spans[i];
    SpanResult& out = result->spans[i];
    out.token = 0;
    out.logprobs.clear();
    out.prompt_logprobs.resize(span.prompt_logits_end -
                               span.prompt_logits_begin);
  }
  plan_ = &plan;
  rows_ = rows;
  decoder_ = &decoder;
  result_ = result;
  next_row_ = 0;
  pool_->Run(take_rows_);
}

void RowSampler::TakeRows(int worker) {
  while (true) {
    const int row = next_row_.fetch_add(1, std::memory_order_relaxed);
    if (row >= rows_.size()) return;
    SampleRow(row, &scratch_[worker]);
  }
}

void RowSampler::SampleRow(int row, Scratch* scratch) {
  const LogitsRow& wanted = rows_[row];
  const SequenceSpan& span = plan_->spans[wanted.span];
  const Sequence& sequence = *span.sequence;
  const v1::ResolvedSampling& sampling = sequence.sampling();
  SpanResult& out = result_->spans[wanted.span];
  const absl::Span<float> logits(scratch->logits.data(), vocab_size_);
  decoder_->CopyLogits(row, logits);

  if (wanted.is_prompt) {
    out.prompt_logprobs[wanted.position - span.prompt_logits_begin] =
        scratch->sampler.Logprobs(logits,
                                  sequence.tokens()[wanted.position + 1],
                                  sampling.prompt_logprobs_plus_one() - 1);
    return;
  }
  out.token = scratch->sampler.Sample(logits, sequence);
  if (sampling.logprobs_plus_one() > 0) {
    out.logprobs.push_back(scratch->sampler.Logprobs(
        logits, out.token, sampling.logprobs_plus_one() - 1));
  }
}

}  // namespace lockstep
