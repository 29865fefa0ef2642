#include "frontend/generation/admission.h"

#include <absl/strings/str_cat.h>

namespace lockstep {

absl::StatusOr<Admission::Ticket> Admission::Admit() {
  if (in_flight_.fetch_add(1) >= limit_) {
    in_flight_.fetch_sub(1);
    return absl::ResourceExhaustedError(absl::StrCat(
        "the gateway already holds ", limit_,
        " requests, the limit of --max_inflight_requests; try again later."));
  }
  return Ticket(&in_flight_);
}

}  // namespace lockstep
