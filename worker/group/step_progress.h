#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "proto/group.pb.h"

namespace lockstep {

// Where a rank's step thread is. Ranks in lockstep wait for each other at known
// places only, so of several that do not go on, the one that is least far is
// the one the others wait for. Heartbeats carry it from rank to rank.
//
//   progress.Enter(step, v1::EXECUTES);      // the step thread
//   const v1::Heartbeat now = progress.Read();  // any thread
//
// Enter and SetOverdue take no lock.
class StepProgress {
 public:
  void Enter(uint64_t step, v1::StepStage stage) {
    place_.store(step * kStages + stage, std::memory_order_relaxed);
  }

  // The step exceeds this rank's limit.
  void SetOverdue(uint64_t step) {
    overdue_step_.store(step, std::memory_order_relaxed);
  }

  // This rank has loaded the model.
  void SetLoaded() { loaded_.store(true, std::memory_order_relaxed); }

  // How many calls of collectives this rank has begun; called by Read, until it
  // is replaced. Empty: none.
  void CountCollectives(std::function<int64_t()> count);

  v1::Heartbeat Read() const;

 private:
  static constexpr uint64_t kStages = v1::StepStage_ARRAYSIZE;

  std::atomic<uint64_t> place_ = v1::FINISHED;  // of step 0
  std::atomic<uint64_t> overdue_step_ = 0;
  std::atomic<bool> loaded_ = false;
  mutable absl::Mutex mutex_;
  std::function<int64_t()> count_collectives_ ABSL_GUARDED_BY(mutex_);
};

// The last step that the sender has finished.
uint64_t FinishedStep(const v1::Heartbeat& heartbeat);

// Whether the sender of `a` is less far than that of `b`.
bool IsBehind(const v1::Heartbeat& a, const v1::Heartbeat& b);

}  // namespace lockstep
