#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include "proto/worker.pb.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep {

// The load the group had after its last step. The step thread writes it, calls
// read it.
class LoadBoard {
 public:
  void Publish(const SchedulerStats& stats);
  v1::Load load() const;

 private:
  mutable absl::Mutex mutex_;
  SchedulerStats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
