#pragma once

#include <absl/functional/function_ref.h>
#include <absl/types/span.h>

#include <atomic>
#include <memory>
#include <vector>

#include "kernels/threads/thread_pool.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/engine/batch_builder.h"
#include "worker/grammar/step_masks.h"
#include "worker/layers/float_buffer.h"
#include "worker/sampling/sampler.h"

namespace lockstep {

// Makes a step's tokens and log-probabilities from its rows of logits, on all
// threads of the rank's pool that come in time. Every rank does this for all
// rows, and all get the same.
class RowSampler {
 public:
  RowSampler(int vocab_size, int max_rows, kernels::ThreadPool* pool);

  // The logits [vocab_size] of rows[row], where they lie or put together in
  // `room`, which has as many. Any thread.
  using LogitsOf = absl::FunctionRef<absl::Span<const float>(
      int row, absl::Span<float> room)>;

  // `rows` are some of the plan's, `masks` the plan's. Fills `result`, one
  // entry a span. A row without a finite logit spoils its span and no other.
  void Sample(const StepPlan& plan, absl::Span<const LogitsRow> rows,
              LogitsOf logits_of, StepMasks* masks, StepResult* result);

 private:
  // What one thread needs.
  struct Scratch {
    explicit Scratch(int vocab_size)
        : sampler(vocab_size), logits(vocab_size) {}

    std::atomic<bool> is_taken = false;
    Sampler sampler;
    FloatBuffer logits;  // [vocab_size], of several ranks
  };

  Scratch& TakeScratch();
  static void SampleRow(const StepPlan& plan, const LogitsRow& row,
                        absl::Span<const float> logits, StepMasks* masks,
                        Sampler* sampler, StepResult* result);

  const int vocab_size_;
  kernels::ThreadPool* const pool_;
  std::vector<std::unique_ptr<Scratch>> scratch_;  // one a thread
  std::vector<char> can_sample_;                   // one a row, of the step
};

}  // namespace lockstep
