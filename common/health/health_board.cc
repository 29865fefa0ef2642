#include "common/health/health_board.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <utility>

namespace lockstep {

absl::string_view PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kStarting:
      return "starting";
    case Phase::kForming:
      return "forming";
    case Phase::kLoading:
      return "loading";
    case Phase::kWarmingUp:
      return "warming up";
    case Phase::kConnecting:
      return "connecting";
    case Phase::kReady:
      return "ready";
    case Phase::kDraining:
      return "draining";
    case Phase::kFailed:
      return "failed";
  }
  return "";
}

void HealthBoard::Enter(Phase phase, absl::string_view detail) {
  if (EnterSilently(phase, detail)) Log(phase, detail);
}

bool HealthBoard::EnterSilently(Phase phase, absl::string_view detail) {
  absl::MutexLock lock(&mutex_);
  if (phase_ == Phase::kFailed) return false;
  if (phase_ == phase && detail_ == detail) return false;
  phase_ = phase;
  detail_ = std::string(detail);
  return true;
}

void HealthBoard::LogPhase() const {
  Phase phase;
  std::string detail;
  {
    absl::MutexLock lock(&mutex_);
    phase = phase_;
    detail = detail_;
  }
  Log(phase, detail);
}

void HealthBoard::Log(Phase phase, absl::string_view detail) const {
  LOG(INFO) << who_ << "phase: " << PhaseName(phase)
            << (detail.empty() ? "" : ": ") << detail;
}

void HealthBoard::SetWork(WorkLimits limits,
                          std::function<absl::Duration()> overdue) {
  absl::MutexLock lock(&mutex_);
  limits_ = limits;
  overdue_ = std::move(overdue);
}

void HealthBoard::ClearWork() {
  absl::MutexLock lock(&mutex_);
  overdue_ = nullptr;
}

HealthReport HealthBoard::report() const {
  absl::MutexLock lock(&mutex_);
  HealthReport report{.live = phase_ != Phase::kFailed,
                      .ready = phase_ == Phase::kReady,
                      .phase = phase_,
                      .detail = detail_};
  const absl::Duration overdue = overdue_ ? overdue_() : absl::ZeroDuration();
  if (overdue <= limits_.ready) return report;
  report.ready = false;
  if (overdue > limits_.live) report.live = false;
  if (report.detail.empty()) {
    report.detail = absl::StrCat("no step has ended for ",
                                 absl::ToInt64Seconds(overdue), " s");
  }
  return report;
}

}  // namespace lockstep
