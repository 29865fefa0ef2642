#include "worker/runtime/rank_loop.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "worker/collectives/blamed_rank.h"
#include "worker/group/step_history.h"
#include "worker/runtime/step_loop.h"
#include "worker/runtime/step_watchdog.h"

namespace lockstep {
namespace {

StepWatchdog::WarmUp LimitOf(const RankLoopParts& parts) {
  // The last of them ends so many passes of the loop after its launch.
  const int ends_after = parts.scheduler.steps_in_flight - 1;
  const int steps =
      parts.warm_up_steps > 0 ? parts.warm_up_steps + ends_after : 0;
  if (parts.step_timeout > absl::ZeroDuration()) {
    return {.steps = steps, .least = parts.step_timeout};
  }
  return {
      .steps = steps,
      .least = kLeastStepTimeout,
      .most = kMostStepTimeout,
      .multiple = 1.0 * kStepTimeoutMultiple * parts.scheduler.max_step_tokens};
}

void CountCollectives(const RankLoopParts& parts) {
  if (parts.progress == nullptr || parts.collective == nullptr) return;
  parts.progress->CountCollectives([collective = parts.collective] {
    return collective->num_all_reduces() + collective->num_all_gathers();
  });
}

// The log comes last, as nobody may read it.
void ReportOverdue(const RankLoopParts& parts, uint64_t step,
                   absl::Duration limit) {
  const std::string overdue =
      absl::StrCat("step ", step, " exceeds its time limit of ",
                   absl::FormatDuration(limit), ".");
  if (parts.progress != nullptr) {
    parts.progress->SetOverdue(step);
  } else {
    parts.failure->Report(
        {.rank = parts.rank, .kind = v1::STEP_OVERDUE, .reason = overdue});
  }
  LOG(ERROR) << overdue;
}

}  // namespace

absl::Status RunRankLoop(const RankLoopParts& parts) {
  CHECK_LE(parts.scheduler.steps_in_flight,
           parts.engine->max_steps_in_flight());
  Scheduler scheduler(parts.scheduler, parts.sink);
  StepHistory history;
  const GroupFailure::LastWords last_words(parts.failure,
                                           [&] { history.WriteToLog(); });
  CountCollectives(parts);
  StepWatchdog watchdog(std::max(kWarmUpTimeout, parts.step_timeout),
                        [&parts, &watchdog](uint64_t step) {
                          ReportOverdue(parts, step, watchdog.limit());
                        });
  watchdog.SetLimitByWarmUp(LimitOf(parts));
  StepLoop loop({.source = parts.source,
                 .scheduler = &scheduler,
                 .engine = parts.engine,
                 .history = &history,
                 .watchdog = &watchdog,
                 .progress = parts.progress,
                 .meter = parts.meter,
                 .grammars = parts.grammars,
                 .on_step_end = parts.on_step_end});
  const absl::Status status = loop.Run();
  if (status.ok()) return status;
  parts.failure->ReportError(BlamedRank(status).value_or(parts.rank),
                             loop.failure_kind(), status);
  history.WriteToLog();
  return parts.failure->status();
}

}  // namespace lockstep
