#pragma once

#include <absl/status/status.h>

#include "proto/group.pb.h"

namespace lockstep {

// Whether a follower's Hello fits the leader's own: a rank of this group, of
// the same size, build, model, flags and instruction set, on the same host.
// FAILED_PRECONDITION names the rank and both values of the first difference.
absl::Status CheckHello(const v1::Hello& leader, const v1::Hello& follower);

}  // namespace lockstep
