#include "worker/runtime/rank_loop.h"

#include <absl/strings/str_cat.h>

#include "worker/group/step_history.h"
#include "worker/runtime/step_loop.h"
#include "worker/runtime/step_watchdog.h"

namespace lockstep {
namespace {

// An aborted collective comes with the cause on its heels.
constexpr absl::Duration kGraceOfACause = absl::Seconds(1);

void ReportError(const RankLoopParts& parts, const absl::Status& error) {
  if (absl::IsUnavailable(error)) {
    parts.failure->ReportUnlessKnown(kGraceOfACause, parts.rank,
                                     error.message());
  } else {
    parts.failure->Report(parts.rank, error.message());
  }
}

}  // namespace

absl::Status RunRankLoop(const RankLoopParts& parts) {
  Scheduler scheduler(parts.scheduler, parts.sink);
  StepHistory history;
  StepWatchdog watchdog(parts.step_timeout, [&parts](uint64_t step) {
    parts.failure->Report(
        parts.rank,
        absl::StrCat("step ", step, " takes longer than --step_timeout of ",
                     absl::FormatDuration(parts.step_timeout), "."));
  });
  StepLoop loop({.source = parts.source,
                 .scheduler = &scheduler,
                 .engine = parts.engine,
                 .history = &history,
                 .watchdog = &watchdog,
                 .on_step_end = parts.on_step_end});
  const absl::Status status = loop.Run();
  if (status.ok()) return status;
  ReportError(parts, status);
  history.WriteToLog();
  return parts.failure->status();
}

}  // namespace lockstep
