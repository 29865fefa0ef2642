#include "worker/service/watch_load_call.h"

#include <absl/base/thread_annotations.h>
#include <absl/strings/str_cat.h>
#include <absl/synchronization/mutex.h>
#include <google/protobuf/util/message_differencer.h>
#include <grpcpp/alarm.h>

#include <chrono>
#include <utility>

#include "common/grpc_status.h"

namespace lockstep {
namespace {

using google::protobuf::util::MessageDifferencer;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kDefaultIntervalMs = 200;
constexpr uint32_t kLeastIntervalMs = 10;
constexpr uint32_t kMostIntervalMs = 10'000;
constexpr absl::Duration kLongestSilence = absl::Seconds(1);

class WatchLoadCall final : public grpc::ServerWriteReactor<v1::Load> {
 public:
  WatchLoadCall(absl::Duration interval, std::function<v1::Load()> load)
      : interval_(interval), load_(std::move(load)) {
    absl::MutexLock lock(&mutex_);
    Send(load_());
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    if (ok && !is_cancelled_) return WaitForNextLook();
    Finish(grpc::Status::CANCELLED);
  }

  void OnCancel() override {
    absl::MutexLock lock(&mutex_);
    is_cancelled_ = true;
    if (is_waiting_) alarm_.Cancel();
  }

  void OnDone() override { delete this; }

 private:
  void WaitForNextLook() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    is_waiting_ = true;
    alarm_.Set(std::chrono::system_clock::now() +
                   absl::ToChronoMilliseconds(interval_),
               [this](bool /*ok*/) { Look(); });
  }

  // On a thread of the alarm, which OnDone does not wait for: once Finish is
  // called nothing of this is touched.
  void Look() {
    if (SendOrWait()) return;
    Finish(grpc::Status::CANCELLED);
  }

  // False when the call was cancelled.
  bool SendOrWait() {
    absl::MutexLock lock(&mutex_);
    is_waiting_ = false;
    if (is_cancelled_) return false;
    const v1::Load load = load_();
    if (MessageDifferencer::Equals(load, message_) &&
        absl::FromChrono(Clock::now() - sent_at_) + interval_ <=
            kLongestSilence) {
      WaitForNextLook();
    } else {
      Send(load);
    }
    return true;
  }

  void Send(const v1::Load& load) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    message_ = load;
    sent_at_ = Clock::now();
    StartWrite(&message_);
  }

  const absl::Duration interval_;
  const std::function<v1::Load()> load_;

  absl::Mutex mutex_;
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);
  v1::Load message_ ABSL_GUARDED_BY(mutex_);  // the last one sent
  Clock::time_point sent_at_ ABSL_GUARDED_BY(mutex_);
  bool is_waiting_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::StatusOr<absl::Duration> WatchInterval(
    const v1::WatchLoadRequest& request) {
  const uint32_t interval_ms =
      request.has_interval_ms() ? request.interval_ms() : kDefaultIntervalMs;
  if (interval_ms < kLeastIntervalMs || interval_ms > kMostIntervalMs) {
    return absl::InvalidArgumentError(
        absl::StrCat("interval_ms is ", interval_ms, "; it must be ",
                     kLeastIntervalMs, " to ", kMostIntervalMs, "."));
  }
  return absl::Milliseconds(interval_ms);
}

grpc::ServerWriteReactor<v1::Load>* StartWatchLoadCall(
    absl::Duration interval, std::function<v1::Load()> load) {
  return new WatchLoadCall(interval, std::move(load));
}

grpc::ServerWriteReactor<v1::Load>* RefuseWatchLoadCall(
    const absl::Status& status) {
  return new RefusedStream<v1::Load>(status);
}

}  // namespace lockstep
