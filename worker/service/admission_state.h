#pragma once

#include <absl/status/status.h>

#include "proto/worker.pb.h"

namespace lockstep {

// What decides whether requests are let in, and what it comes to. A value.
//
//   AdmissionState state;
//   state.is_warm = true;
//   LOCKSTEP_RETURN_IF_ERROR(state.CheckServing());
struct AdmissionState {
  bool is_warm = false;
  bool is_drained = false;
  // For good, where `closed` is not OK: STOPPING or FAILED, and why.
  v1::ServingState closed_state = v1::SERVING_STATE_UNSPECIFIED;
  absl::Status closed;

  v1::ServingState state() const {
    if (!closed.ok()) return closed_state;
    if (is_drained) return v1::DRAINING;
    return is_warm ? v1::SERVING : v1::STARTING;
  }

  // OK in the state SERVING, else why not: UNAVAILABLE.
  absl::Status CheckServing() const;
};

}  // namespace lockstep
