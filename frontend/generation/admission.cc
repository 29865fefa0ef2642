#include "frontend/generation/admission.h"

#include <absl/strings/str_cat.h>

namespace lockstep {

absl::StatusOr<Admission::Ticket> Admission::Admit() {
  absl::MutexLock lock(&mutex_);
  if (is_closed_) {
    return absl::UnavailableError(
        "the gateway is shutting down and takes no new requests.");
  }
  if (in_flight_ >= limit_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the gateway already holds ", limit_,
        " requests, the limit of --max_inflight_requests; try again later."));
  }
  ++in_flight_;
  return Ticket(this);
}

void Admission::Close() {
  absl::MutexLock lock(&mutex_);
  is_closed_ = true;
}

bool Admission::AwaitIdle(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(this, &Admission::IsIdle),
                                 timeout);
}

int Admission::in_flight() const {
  absl::MutexLock lock(&mutex_);
  return in_flight_;
}

void Admission::Release() {
  absl::MutexLock lock(&mutex_);
  --in_flight_;
}

}  // namespace lockstep
