#pragma once

#include <absl/types/span.h>

#include <atomic>
#include <functional>
#include <vector>

#include "kernels/thread_pool.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/engine/batch_builder.h"
#include "worker/layers/float_buffer.h"
#include "worker/models/decoder.h"
#include "worker/sampling/sampler.h"

namespace lockstep {

// Makes a step's tokens and log-probabilities from its rows of logits, on all
// threads of the rank's pool. Every rank does this for all rows, and all get
// the same.
class RowSampler {
 public:
  RowSampler(int vocab_size, kernels::ThreadPool* pool);
  // The threads' job points to this.
  RowSampler(const RowSampler&) = delete;
  RowSampler& operator=(const RowSampler&) = delete;

  // `rows` are those of the decoder's last Forward. Fills `result`, one entry a
  // span.
  void Sample(const StepPlan& plan, absl::Span<const LogitsRow> rows,
              const Decoder& decoder, StepResult* result);

 private:
  // What one thread needs.
  struct Scratch {
    Sampler sampler;
    FloatBuffer logits;  // [vocab_size]
  };

  void TakeRows(int worker);
  void SampleRow(int row, Scratch* scratch);

  const int vocab_size_;
  kernels::ThreadPool* const pool_;
  std::vector<Scratch> scratch_;              // one a thread
  const std::function<void(int)> take_rows_;  // made once: it allocates
  std::atomic<int> next_row_ = 0;

  // Of the call in progress.
  const StepPlan* plan_ = nullptr;
  absl::Span<const LogitsRow> rows_;
  const Decoder* decoder_ = nullptr;
  StepResult* result_ = nullptr;
};

}  // namespace lockstep
