#include "worker/grammar/step_masks.h"

#include <glog/logging.h>
#include <pthread.h>

#include <memory>
#include <utility>

#include "common/status_macros.h"
#include "worker/grammar/sequence_grammar.h"

namespace lockstep {

StepMasks::StepMasks(GrammarStore* grammars, const Options& options)
    : grammars_(grammars),
      options_(options),
      jobs_(std::make_unique<Job[]>(options.max_spans)) {
  job_of_span_.reserve(options.max_spans);
  if (grammars == nullptr || !options.has_thread) return;
  thread_ = std::thread([this] { RunThread(); });
  pthread_setname_np(thread_.native_handle(), "masks");
}

StepMasks::~StepMasks() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stops_ = true;
  }
  thread_.join();
}

void StepMasks::Begin(const StepPlan& plan) {
  num_jobs_ = 0;
  job_of_span_.clear();
  for (const SequenceSpan& span : plan.spans) {
    const bool has_mask =
        span.samples && span.sequence->request().grammar() != 0;
    job_of_span_.push_back(has_mask ? num_jobs_ : -1);
    if (!has_mask) continue;
    CHECK(grammars_ != nullptr) << "a grammar where there are none";
    Job& job = jobs_[num_jobs_++];
    job.sequence = span.sequence;
    job.stage.store(Stage::kWaits, std::memory_order_relaxed);
  }
  if (num_jobs_ == 0 || !thread_.joinable()) return;
  absl::MutexLock lock(&mutex_);
  has_work_ = true;
}

StepMasks::Mask StepMasks::MaskOf(int span) {
  Job& job = jobs_[job_of_span_[span]];
  if (Take(job)) {
    Find(job);
  } else {
    job.stage.wait(Stage::kTaken, std::memory_order_acquire);
  }
  return job.mask;
}

void StepMasks::End() {
  if (!thread_.joinable()) return;
  absl::MutexLock lock(&mutex_);
  has_work_ = false;
  mutex_.Await(absl::Condition(&is_idle_));
}

bool StepMasks::Take(Job& job) {
  Stage waits = Stage::kWaits;
  return job.stage.compare_exchange_strong(waits, Stage::kTaken,
                                           std::memory_order_acq_rel);
}

void StepMasks::Find(Job& job) {
  job.mask = MaskOf(*job.sequence);
  job.stage.store(Stage::kDone, std::memory_order_release);
  job.stage.notify_all();
}

StepMasks::Mask StepMasks::MaskOf(const Sequence& sequence) {
  std::unique_ptr<SequenceState>& state = sequence.engine_state();
  if (state == nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(GrammarMatcher matcher,
                              grammars_->Begin(sequence.request().grammar()));
    state = std::make_unique<SequenceGrammar>(std::move(matcher),
                                              options_.vocab_size);
  }
  return static_cast<SequenceGrammar&>(*state).Mask(sequence);
}

void StepMasks::RunThread() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      is_idle_ = true;
      mutex_.Await(absl::Condition(this, &StepMasks::HasCall));
      if (stops_) return;
      has_work_ = false;
      is_idle_ = false;
    }
    for (int i = 0; i < num_jobs_; ++i) {
      if (Take(jobs_[i])) Find(jobs_[i]);
    }
  }
}

}  // namespace lockstep
