#include "worker/runtime/load_watch.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "proto/group.pb.h"

namespace lockstep {

LoadWatch::LoadWatch(Options options, GroupFailure* failure)
    : options_(std::move(options)), failure_(failure) {
  for (int rank = 0; rank < options_.ranks; ++rank) missing_.insert(rank);
  failure_->OnFailure([this](const auto&) {
    std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  });
}

LoadWatch::~LoadWatch() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LoadWatch::Start() {
  thread_ = std::thread([this] { Watch(); });
  pthread_setname_np(thread_.native_handle(), "load-watch");
}

void LoadWatch::SetLoaded(int rank) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (missing_.erase(rank) > 0 && missing_.empty()) changed_.notify_all();
}

absl::Status LoadWatch::WaitForAll() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return missing_.empty() || is_over_; });
    if (!missing_.empty()) return failure_->status();
  }
  if (thread_.joinable()) thread_.join();
  return absl::OkStatus();
}

std::string LoadWatch::Missing() const {
  return absl::StrCat("rank ", absl::StrJoin(missing_, ", "));
}

void LoadWatch::Watch() {
  absl::Duration elapsed;
  std::unique_lock<std::mutex> lock(mutex_);
  while (elapsed < options_.timeout) {
    const absl::Duration pause =
        std::min(options_.tell_every, options_.timeout - elapsed);
    if (changed_.wait_for(lock, absl::ToChronoNanoseconds(pause),
                          [this] { return missing_.empty() || is_over_; })) {
      return;
    }
    elapsed += pause;
    const std::string told =
        absl::StrCat(Missing(), " still loads the model, for ",
                     absl::FormatDuration(elapsed), " of --load_timeout of ",
                     absl::FormatDuration(options_.timeout));
    lock.unlock();
    if (options_.tell) options_.tell(told);
    lock.lock();
  }
  if (missing_.empty() || is_over_) return;
  const std::string missing = Missing();
  const int first = *missing_.begin();
  lock.unlock();
  failure_->Report(
      {.rank = first,
       .kind = v1::START_UP_FAILED,
       .reason = absl::StrCat(missing, " did not load the model within ",
                              "--load_timeout of ",
                              absl::FormatDuration(options_.timeout), ".")});
}

}  // namespace lockstep
