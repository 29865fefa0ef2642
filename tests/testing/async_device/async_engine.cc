#include "tests/testing/async_device/async_engine.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>
#include <pthread.h>

#include <algorithm>
#include <utility>

#include "common/status_macros.h"

namespace lockstep::testing {
namespace {

constexpr size_t kMostYields = 8;

}  // namespace

AsyncEngine::AsyncEngine(const Options& options, Choose choose)
    : options_(options),
      choose_(std::move(choose)),
      memory_(options.num_pages, options.page_size) {
  if (!options.has_thread) return;
  thread_ = std::thread([this] { RunThread(); });
  pthread_setname_np(thread_.native_handle(), "device");
}

AsyncEngine::~AsyncEngine() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stops_ = true;
  }
  thread_.join();
}

absl::Status AsyncEngine::Launch(const StepPlan& plan) {
  absl::MutexLock lock(&mutex_);
  CHECK_LT(steps_.size(), max_steps_in_flight());
  if (options_.host_samples && !steps_.empty() && steps_.back()->needs_host) {
    return absl::InternalError(
        absl::StrCat("step ", plan.step,
                     " is launched while a part of the step before is "
                     "the host's."));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(newest_, MakeDeviceStep(plan, std::move(newest_)));
  steps_.push_back(newest_);
  while (!options_.has_thread && HasWork() && choose_(2) == 1) RunOne();
  return absl::OkStatus();
}

absl::Status AsyncEngine::Retire(StepResult* result) {
  absl::MutexLock lock(&mutex_);
  CHECK(!steps_.empty());
  if (options_.has_thread) {
    mutex_.Await(absl::Condition(this, &AsyncEngine::OldestHasRun));
  } else {
    while (!OldestHasRun()) RunOne();
  }
  DeviceStep& step = *steps_.front();
  step.before.reset();
  result->spans.clear();
  for (const DeviceJob& job : step.jobs) result->spans.push_back(job.result);
  const absl::Status status = step.status;
  steps_.pop_front();
  return status;
}

bool AsyncEngine::HasWork() const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [](const auto& step) { return step->left > 0; });
}

void AsyncEngine::RunOne() {
  std::vector<std::pair<DeviceStep*, DeviceJob*>> can_run;
  for (const auto& step : steps_) {
    for (DeviceJob& job : step->jobs) {
      if (CanRun(*step, job)) can_run.emplace_back(step.get(), &job);
    }
  }
  const auto [step, job] = can_run[choose_(can_run.size())];
  // The host goes on meanwhile.
  mutex_.Unlock();
  if (options_.has_thread) {
    for (size_t i = choose_(kMostYields); i > 0; --i) std::this_thread::yield();
  }
  const absl::Status status =
      RunJob(*step, options_.vocabulary_size, &memory_, job);
  mutex_.Lock();
  step->status.Update(status);
  job->has_run = true;
  --step->left;
}

void AsyncEngine::RunThread() {
  absl::MutexLock lock(&mutex_);
  while (true) {
    mutex_.Await(absl::Condition(this, &AsyncEngine::HasCall));
    if (stops_) return;
    RunOne();
  }
}

}  // namespace lockstep::testing
