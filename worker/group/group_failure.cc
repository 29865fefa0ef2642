#include "worker/group/group_failure.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>
#include <pthread.h>
#include <unistd.h>

#include <utility>

#include "common/time/steady_wait.h"

namespace lockstep {
namespace {

constexpr size_t kMaxReasonBytes = 2 << 10;
constexpr unsigned kLastWordsSeconds = 1;

// Text that fits in one line, and in a message between ranks.
std::string OneLine(std::string text) {
  if (text.size() > kMaxReasonBytes) text.resize(kMaxReasonBytes);
  for (char& c : text) {
    if (c < ' ' || c > '~') c = c == '\n' ? ' ' : '?';
  }
  return text;
}

}  // namespace

std::string GroupFailure::Cause::ToString() const {
  return absl::StrCat("rank ", rank, " failed first: ", reason);
}

GroupFailure::GroupFailure(Options options)
    : options_(std::move(options)),
      last_resort_([this] { Watch(); }),
      verdict_([this] { WriteVerdict(); }) {
  pthread_setname_np(last_resort_.native_handle(), "last-resort");
  pthread_setname_np(verdict_.native_handle(), "verdict");
}

GroupFailure::~GroupFailure() {
  Disarm();
  {
    std::lock_guard lock(mutex_);
    destroyed_ = true;
  }
  changed_.notify_all();
  last_resort_.join();
  verdict_.join();
}

void GroupFailure::OnFailure(Hook hook) {
  absl::MutexLock hooks_lock(&hooks_mutex_);
  std::optional<Cause> cause;
  {
    std::lock_guard lock(mutex_);
    if (!disarmed_) cause = cause_;
  }
  if (cause.has_value()) hook(*cause);
  hooks_.push_back(std::move(hook));
}

void GroupFailure::OnVerdict(Hook log) {
  absl::MutexLock hooks_lock(&hooks_mutex_);
  std::optional<Cause> cause;
  {
    std::lock_guard lock(mutex_);
    if (!disarmed_) cause = cause_;
  }
  if (cause.has_value()) return log(*cause);
  logs_.push_back(std::move(log));
}

void GroupFailure::Report(Cause cause) {
  cause.reason = OneLine(std::move(cause.reason));
  absl::MutexLock hooks_lock(&hooks_mutex_);
  {
    std::lock_guard lock(mutex_);
    if (disarmed_ || cause_.has_value()) return;
    cause_ = cause;
  }
  changed_.notify_all();
  for (const Hook& hook : hooks_) hook(cause);
  {
    std::lock_guard lock(mutex_);
    told_ = true;
  }
  changed_.notify_all();
}

void GroupFailure::WriteVerdict() {
  Cause cause;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return destroyed_ || told_; });
    if (!told_) return;
    cause = *cause_;
  }
  LOG(ERROR) << "the group failed: " << cause.ToString() << " ["
             << v1::FailureKind_Name(cause.kind) << "]";
  std::vector<Hook> logs;
  {
    absl::MutexLock hooks_lock(&hooks_mutex_);
    logs = std::move(logs_);
  }
  for (const Hook& log : logs) log(cause);
  {
    std::lock_guard lock(mutex_);
    logged_ = true;
  }
  changed_.notify_all();
}

void GroupFailure::ReportError(int rank, v1::FailureKind kind,
                               const absl::Status& error,
                               absl::Duration grace) {
  if (absl::IsUnavailable(error)) {
    std::unique_lock lock(mutex_);
    const auto known = [this] { return disarmed_ || cause_.has_value(); };
    if (WaitFor(changed_, lock, grace, known)) return;
  }
  Report({.rank = rank, .kind = kind, .reason = std::string(error.message())});
}

std::optional<GroupFailure::Cause> GroupFailure::cause() const {
  std::lock_guard lock(mutex_);
  return cause_;
}

absl::Status GroupFailure::status() const {
  std::lock_guard lock(mutex_);
  if (!cause_.has_value()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the worker group failed: ", cause_->ToString()));
}

void GroupFailure::Disarm() {
  {
    absl::MutexLock hooks_lock(&hooks_mutex_);
    std::lock_guard lock(mutex_);
    disarmed_ = true;
  }
  changed_.notify_all();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !told_ || logged_; });
}

GroupFailure::LastWords::LastWords(GroupFailure* failure,
                                   std::function<void()> say)
    : failure_(failure) {
  absl::MutexLock lock(&failure_->last_words_mutex_);
  failure_->last_words_ = std::move(say);
}

GroupFailure::LastWords::~LastWords() {
  absl::MutexLock lock(&failure_->last_words_mutex_);
  failure_->last_words_ = nullptr;
}

void GroupFailure::Watch() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return destroyed_ || cause_.has_value(); });
  if (WaitFor(changed_, lock, options_.exit_within,
              [this] { return destroyed_; })) {
    return;
  }
  lock.unlock();
  // Its signal ends the process should nobody read the log.
  if (!options_.last_resort) alarm(kLastWordsSeconds);
  LOG(ERROR) << "the process did not leave within " << options_.exit_within
             << " of the failure; ending it.";
  {
    absl::MutexLock words_lock(&last_words_mutex_);
    if (last_words_) last_words_();
  }
  if (options_.last_resort) {
    options_.last_resort();
  } else {
    _exit(1);
  }
}

}  // namespace lockstep
