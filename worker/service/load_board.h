#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include "proto/worker.pb.h"
#include "worker/group/request_inbox.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep {

// The load of the group: what it had after its last step, and what has come
// since. The step thread writes it, calls read it.
class LoadBoard {
 public:
  // `inbox` must outlive this.
  explicit LoadBoard(const RequestInbox* inbox) : inbox_(inbox) {}

  void Publish(const SchedulerStats& stats);
  v1::Load load() const;

 private:
  const RequestInbox* const inbox_;
  mutable absl::Mutex mutex_;
  SchedulerStats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
