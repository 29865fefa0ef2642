#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <absl/types/span.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "worker/core/step_plan.h"
#include "worker/grammar/grammar_store.h"

namespace lockstep {

// The masks of the sequences with grammars of one step. Where a core is to
// spare, a thread "masks" finds them while the model computes; those it has not
// got to are found by whoever asks. Who finds one changes nothing of it.
//
//   masks.Begin(plan);
//   …the forward pass…
//   LOCKSTEP_ASSIGN_OR_RETURN(auto mask, masks.MaskOf(span));
//   masks.End();
//
// Begin and End are the engine's thread's. Allocates nothing of its own once a
// sequence has its grammar; what the library does is in GrammarMatcher.
class StepMasks {
 public:
  struct Options {
    int max_spans = 0;
    size_t vocab_size = 0;
    bool has_thread = false;
  };

  // `grammars` may be null where no plan has a sequence with one; else it must
  // outlive this.
  StepMasks(GrammarStore* grammars, const Options& options);
  ~StepMasks();

  void Begin(const StepPlan& plan);

  // Whether plan.spans[span] chooses a token that a grammar limits.
  bool HasMask(int span) const { return job_of_span_[span] >= 0; }

  // What may follow it; see SequenceGrammar. Valid until the sequence's next
  // step. Any thread between Begin and End, each span once.
  // REQUIRES: HasMask(span).
  absl::StatusOr<absl::Span<const uint32_t>> MaskOf(int span);

  // No thread but the caller's is at the plan's sequences any more.
  void End();

 private:
  using Mask = absl::StatusOr<absl::Span<const uint32_t>>;
  enum class Stage { kWaits, kTaken, kDone };

  struct Job {
    const Sequence* sequence = nullptr;
    std::atomic<Stage> stage = Stage::kWaits;
    Mask mask;
  };

  bool Take(Job& job);
  void Find(Job& job);
  Mask MaskOf(const Sequence& sequence);
  void RunThread();
  bool HasCall() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return has_work_ || stops_;
  }

  GrammarStore* const grammars_;
  const Options options_;
  const std::unique_ptr<Job[]> jobs_;  // [max_spans]
  int num_jobs_ = 0;
  std::vector<int> job_of_span_;  // -1: none

  absl::Mutex mutex_;
  bool has_work_ ABSL_GUARDED_BY(mutex_) = false;  // for the thread
  bool is_idle_ ABSL_GUARDED_BY(mutex_) = true;    // the thread
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep
