#include "worker/group/group_failure.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>
#include <pthread.h>
#include <unistd.h>

#include <utility>

namespace lockstep {

std::string GroupFailure::Cause::ToString() const {
  return absl::StrCat("rank ", rank, " failed first: ", reason);
}

GroupFailure::GroupFailure(Options options)
    : options_(std::move(options)), last_resort_([this] { Watch(); }) {
  pthread_setname_np(last_resort_.native_handle(), "last-resort");
}

GroupFailure::~GroupFailure() {
  Disarm();
  {
    absl::MutexLock lock(&mutex_);
    destroyed_ = true;
  }
  last_resort_.join();
}

void GroupFailure::OnFailure(Hook hook) {
  absl::MutexLock hooks_lock(&hooks_mutex_);
  std::optional<Cause> cause;
  {
    absl::MutexLock lock(&mutex_);
    if (!disarmed_) cause = cause_;
  }
  if (cause.has_value()) hook(*cause);
  hooks_.push_back(std::move(hook));
}

void GroupFailure::Report(int rank, absl::string_view reason) {
  absl::MutexLock hooks_lock(&hooks_mutex_);
  Cause cause{.rank = rank, .reason = std::string(reason)};
  {
    absl::MutexLock lock(&mutex_);
    if (disarmed_) return;
    if (cause_.has_value()) {
      VLOG(1) << "rank " << rank << " failed too: " << reason;
      return;
    }
    cause_ = cause;
  }
  LOG(ERROR) << "the group failed: " << cause.ToString();
  for (const Hook& hook : hooks_) hook(cause);
}

void GroupFailure::ReportError(int rank, const absl::Status& error,
                               absl::Duration grace) {
  if (absl::IsUnavailable(error)) {
    absl::MutexLock lock(&mutex_);
    const auto known = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return disarmed_ || cause_.has_value();
    };
    if (mutex_.AwaitWithTimeout(absl::Condition(&known), grace)) return;
  }
  Report(rank, error.message());
}

absl::Status GroupFailure::status() const {
  absl::MutexLock lock(&mutex_);
  if (!cause_.has_value()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the worker group failed: ", cause_->ToString()));
}

void GroupFailure::Disarm() {
  absl::MutexLock hooks_lock(&hooks_mutex_);
  absl::MutexLock lock(&mutex_);
  disarmed_ = true;
}

void GroupFailure::Watch() {
  absl::MutexLock lock(&mutex_);
  const auto failed = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return destroyed_ || cause_.has_value();
  };
  mutex_.Await(absl::Condition(&failed));
  if (mutex_.AwaitWithTimeout(absl::Condition(&destroyed_),
                              options_.exit_within)) {
    return;
  }
  LOG(ERROR) << "the process did not leave within " << options_.exit_within
             << " of the failure; ending it.";
  if (options_.last_resort) {
    options_.last_resort();
  } else {
    _exit(1);
  }
}

}  // namespace lockstep
