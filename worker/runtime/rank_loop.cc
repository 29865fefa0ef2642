#include "worker/runtime/rank_loop.h"

#include <absl/strings/str_cat.h>

#include "worker/group/step_history.h"
#include "worker/runtime/step_loop.h"
#include "worker/runtime/step_watchdog.h"

namespace lockstep {

absl::Status RunRankLoop(const RankLoopParts& parts) {
  Scheduler scheduler(parts.scheduler, parts.sink);
  StepHistory history;
  StepWatchdog watchdog(parts.step_timeout, [&parts](uint64_t step) {
    parts.failure->Report(
        {.rank = parts.rank,
         .kind = v1::STEP_OVERDUE,
         .reason = absl::StrCat(
             "step ", step, " takes longer than --step_timeout of ",
             absl::FormatDuration(parts.step_timeout), ".")});
  });
  StepLoop loop({.source = parts.source,
                 .scheduler = &scheduler,
                 .engine = parts.engine,
                 .history = &history,
                 .watchdog = &watchdog,
                 .on_step_end = parts.on_step_end});
  const absl::Status status = loop.Run();
  if (status.ok()) return status;
  parts.failure->ReportError(parts.rank, loop.failure_kind(), status);
  history.WriteToLog();
  return parts.failure->status();
}

}  // namespace lockstep
