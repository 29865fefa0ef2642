#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include "worker/collectives/collective.h"

namespace lockstep {

// Exchanges known values, small and in several chunks, before the first of a
// model: a rank that hears nothing, or something else, is found here and not in
// an answer. Every rank calls it at the same place; each call waits at most
// `timeout`. Afterwards the collective has no time limit.
//
// DEADLINE_EXCEEDED and INTERNAL name the rank that did not come or whose
// values are wrong; UNAVAILABLE as every call.
absl::Status TestCollective(Collective* collective, absl::Duration timeout);

}  // namespace lockstep
