#include "worker/service/drain.h"

#include <glog/logging.h>

#include <utility>

#include "common/error_reason.h"

namespace lockstep {

Drain::Drain(Admission* admission, OutputRouter* router, RequestInbox* inbox)
    : admission_(admission), router_(router), inbox_(inbox) {}

void Drain::Begin() {
  admission_->Close(v1::STOPPING,
                    MakeError(ErrorReason::kWorkerDraining,
                              "the worker is draining; ask another one."));
  num_live_at_begin_ = router_->num_live();
  router_->WhenEmpty([inbox = inbox_] { inbox->Stop(); });
}

void Drain::LogBegin() {
  LOG(INFO) << "draining: " << num_live_at_begin_ << " live requests";
}

void Drain::Hurry() {
  const absl::Status status =
      MakeError(ErrorReason::kWorkerStopped,
                "the worker shut down before the request had ended.");
  EndLive(status);
  admission_->EndCalls(status);
}

void Drain::Pause(std::optional<std::chrono::milliseconds> timeout) {
  {
    absl::MutexLock lock(&mutex_);
    const uint64_t pause = ++pause_;
    admission_->Drain();
    CancelTimeout();
    if (timeout.has_value()) {
      timer_ = admission_->timers().At(Admission::Clock::now() + *timeout,
                                       [this, pause] { OnTimeout(pause); });
    }
  }
  LOG(INFO) << "drained by a call: " << router_->num_live() << " live requests";
}

absl::Status Drain::Resume() {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    ++pause_;
    CancelTimeout();
    status = admission_->Undrain();
  }
  if (status.ok()) LOG(INFO) << "serves again, by a call";
  return status;
}

v1::DrainResponse Drain::state() const {
  v1::DrainResponse response;
  response.set_state(admission_->state());
  response.set_live_requests(router_->num_live());
  return response;
}

void Drain::CancelTimeout() {
  admission_->timers().Cancel(std::exchange(timer_, 0));
}

// One that could not be cancelled any more may come late.
void Drain::OnTimeout(uint64_t pause) {
  absl::MutexLock lock(&mutex_);
  if (pause != pause_) return;
  EndLive(MakeError(ErrorReason::kWorkerStopped,
                    "the worker was drained before the request had ended."));
}

void Drain::EndLive(const absl::Status& status) {
  for (const auto& stream : router_->Live()) {
    admission_->End(*stream, v1::SHUTDOWN, status);
  }
}

}  // namespace lockstep
