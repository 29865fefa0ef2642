#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <functional>
#include <string>
#include <utility>

namespace lockstep {

// Where a process is between its start and its end.
enum class Phase {
  kStarting,
  kForming,     // a worker group: waits for its ranks
  kLoading,     // weights
  kWarmingUp,   // the first steps
  kConnecting,  // a gateway: waits for a worker group
  kReady,
  kDraining,
  kFailed,  // and about to leave; no other phase follows
};

absl::string_view PhaseName(Phase phase);  // "warming up"

// What a probe is told.
struct HealthReport {
  bool live = true;
  bool ready = false;
  Phase phase = Phase::kStarting;
  std::string detail;  // why, or what it waits for; may be empty
};

// What a process knows of its own health.
//
//   HealthBoard board("rank 0: ");
//   board.Enter(Phase::kLoading, "the model");  // and one line in the log
//   board.Enter(Phase::kReady);
//   board.report();
//
// It is live unless it has failed, ready in the phase kReady; and neither when
// work that is due is not done in time: see SetWork. Any thread. No method
// waits for what the process does, unless it logs.
class HealthBoard {
 public:
  struct WorkLimits {
    absl::Duration ready;
    absl::Duration live;
  };

  // `who` begins its lines in the log, where several processes share one.
  explicit HealthBoard(std::string who = "") : who_(std::move(who)) {}

  void Enter(Phase phase, absl::string_view detail = "");

  // The same in two: the log may wait for its reader, which those who are to be
  // told of a failure must not. False where it was so, or has failed before.
  bool EnterSilently(Phase phase, absl::string_view detail = "");
  void LogPhase() const;

  // `overdue` says since when something has been due without any progress; zero
  // while nothing is. It is called by report, on that thread, must not block,
  // and is not called any more when ClearWork has returned.
  void SetWork(WorkLimits limits, std::function<absl::Duration()> overdue);
  void ClearWork();

  HealthReport report() const;

 private:
  void Log(Phase phase, absl::string_view detail) const;

  const std::string who_;
  mutable absl::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kStarting;
  std::string detail_ ABSL_GUARDED_BY(mutex_);
  WorkLimits limits_ ABSL_GUARDED_BY(mutex_);
  std::function<absl::Duration()> overdue_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
