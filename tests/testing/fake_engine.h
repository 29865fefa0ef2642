#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "proto/group.pb.h"
#include "proto/sampling.pb.h"
#include "worker/engine/synchronous_engine.h"

namespace lockstep {

// A twin of the engine without a model. The next token is a hash of all tokens
// before it, the seed and the choice, so what a sequence must produce can be
// computed without any scheduler (ContinueAlone).
//
//   FakeEngine engine({.num_pages = 8, .page_size = 16});
//   engine.Execute(plan, &result);
//
// It keeps token ids page by page as an engine keeps keys and values: a span
// writes its tokens into the slots of its pages, and the context is read back
// through the page table, from position 0. A wrong page table, or a page that
// was reused too early, shows as wrong tokens.
class FakeEngine final : public SynchronousEngine {
 public:
  struct Options {
    int num_pages = 0;
    int page_size = 16;
    uint32_t vocabulary_size = 1000;
  };

  explicit FakeEngine(const Options& options);

  // Called first in every Execute; an error is its result. For faults, delays
  // and checks of the plan.
  void set_before_step(std::function<absl::Status(const StepPlan&)> hook);

  // INTERNAL if a slot that a sequence reads was never written.
  // Log-probabilities are filled in where the request asks; each is a hash of
  // the token and those before it.
  absl::Status Execute(const StepPlan& plan, StepResult* result) override;

 private:
  absl::Status ReadContext(const Sequence& sequence, int end);
  absl::Status FillSpan(const SequenceSpan& span, SpanResult* result);
  size_t Slot(const Sequence& sequence, int position) const;

  const Options options_;
  std::function<absl::Status(const StepPlan&)> before_step_;
  std::vector<int64_t> slots_;  // [num_pages, page_size] ids; -1: not written
  std::vector<uint32_t> context_;
};

// The token that follows `context`.
uint32_t FakeToken(absl::Span<const uint32_t> context,
                   const v1::ResolvedSampling& sampling, uint32_t choice,
                   uint32_t vocabulary_size);

// Of `token` after `context`; `k` further entries.
v1::PositionLogprobs FakeLogprobs(absl::Span<const uint32_t> context,
                                  uint32_t token, int k);

// What an input gets, whatever else runs; never normalized.
std::vector<float> FakeEmbedding(absl::Span<const uint32_t> token_ids,
                                 const v1::ResolvedEmbedding& embedding);

// What a choice of a request gets when nothing else runs.
struct FakeOutput {
  std::vector<uint32_t> tokens;  // without the resumed ones
  v1::FinishReason reason = v1::FINISH_REASON_UNSPECIFIED;

  friend bool operator==(const FakeOutput&, const FakeOutput&) = default;
};

FakeOutput ContinueAlone(const v1::AddRequest& request, uint32_t choice,
                         int max_context, uint32_t vocabulary_size);

}  // namespace lockstep
