#include "worker/engine/row_sampler.h"

#include <glog/logging.h>

#include "proto/group.pb.h"
#include "worker/core/sequence.h"

namespace lockstep {

RowSampler::RowSampler(int vocab_size, int max_rows, kernels::ThreadPool* pool)
    : vocab_size_(vocab_size), pool_(pool) {
  can_sample_.reserve(max_rows);
  for (int i = 0; i < pool->size(); ++i) {
    scratch_.push_back(std::make_unique<Scratch>(vocab_size));
  }
}

void RowSampler::Sample(const StepPlan& plan, absl::Span<const LogitsRow> rows,
                        LogitsOf logits_of, StepMasks* masks,
                        StepResult* result) {
  result->spans.resize(plan.spans.size());
  for (size_t i = 0; i < plan.spans.size(); ++i) {
    const SequenceSpan& span = plan.spans[i];
    SpanResult& out = result->spans[i];
    out.token = 0;
    out.is_finite = true;
    out.logprobs.clear();
    out.prompt_logprobs.resize(span.prompt_logits_end -
                               span.prompt_logits_begin);
  }
  can_sample_.resize(rows.size());
  pool_->For(rows.size(), /*grain=*/1, [&](int64_t begin, int64_t end) {
    Scratch& scratch = TakeScratch();
    const absl::Span<float> room(scratch.logits.data(), vocab_size_);
    for (int64_t i = begin; i < end; ++i) {
      const absl::Span<const float> logits = logits_of(i, room);
      can_sample_[i] = Sampler::CanSample(logits);
      if (!can_sample_[i]) continue;
      SampleRow(plan, rows[i], logits, masks, &scratch.sampler, result);
    }
    scratch.is_taken.store(false, std::memory_order_release);
  });
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!can_sample_[i]) result->spans[rows[i].span].is_finite = false;
  }
}

// No more threads are at it than there is scratch for.
RowSampler::Scratch& RowSampler::TakeScratch() {
  for (size_t i = 0;; i = (i + 1) % scratch_.size()) {
    if (!scratch_[i]->is_taken.exchange(true, std::memory_order_acquire)) {
      return *scratch_[i];
    }
  }
}

void RowSampler::SampleRow(const StepPlan& plan, const LogitsRow& row,
                           absl::Span<const float> logits, StepMasks* masks,
                           Sampler* sampler, StepResult* result) {
  const SequenceSpan& span = plan.spans[row.span];
  const Sequence& sequence = *span.sequence;
  const v1::ResolvedSampling& sampling = sequence.sampling();
  SpanResult& out = result->spans[row.span];
  if (row.is_prompt) {
    out.prompt_logprobs[row.position - span.prompt_logits_begin] =
        sampler->Logprobs(logits, sequence.tokens()[row.position + 1],
                          sampling.prompt_logprobs_plus_one() - 1);
    return;
  }
  TokenMask mask;
  if (masks->HasMask(row.span)) {
    const auto found = masks->MaskOf(row.span);
    if (!found.ok()) {
      LOG(WARNING) << "request " << sequence.id().request
                   << " ends at its grammar: " << found.status();
      out.token = kNoToken;
      return;
    }
    mask = *found;
  }
  out.token = sampler->Sample(logits, sequence, mask);
  if (sampling.logprobs_plus_one() > 0) {
    out.logprobs.push_back(sampler->Logprobs(
        logits, out.token, sampling.logprobs_plus_one() - 1, mask));
  }
}

}  // namespace lockstep
