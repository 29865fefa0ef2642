#include "worker/service/load_board.h"

namespace lockstep {

void LoadBoard::Publish(const SchedulerStats& stats) {
  absl::MutexLock lock(&mutex_);
  stats_ = stats;
}

v1::Load LoadBoard::load() const {
  const RequestInbox::Waiting untold = inbox_->waiting();
  absl::MutexLock lock(&mutex_);
  v1::Load load;
  load.set_running_sequences(stats_.running_sequences);
  load.set_waiting_sequences(stats_.waiting_sequences + untold.sequences);
  load.set_waiting_tokens(stats_.waiting_tokens + untold.tokens);
  load.set_free_pages(stats_.free_pages);
  load.set_cached_pages(stats_.cached_pages);
  load.set_total_pages(stats_.total_pages);
  load.set_step(stats_.step);
  return load;
}

}  // namespace lockstep
