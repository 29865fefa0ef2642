#include "worker/service/admission_state.h"

#include "common/error_reason.h"

namespace lockstep {

absl::Status AdmissionState::CheckServing() const {
  switch (state()) {
    case v1::SERVING:
      return absl::OkStatus();
    case v1::DRAINING:
      return MakeError(ErrorReason::kWorkerDraining,
                       "the worker is draining; ask another one.");
    case v1::STARTING:
      return MakeError(ErrorReason::kWorkerStarting, "the worker is starting.");
    default:
      return closed;
  }
}

}  // namespace lockstep
