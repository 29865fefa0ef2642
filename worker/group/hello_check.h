#pragma once

#include <absl/status/status.h>

#include "proto/group.pb.h"

namespace lockstep {

// Whether a follower's Hello fits the leader's own: a rank of this group, of
// the same size, build, model and flags, on the same host. Instruction sets may
// differ: they give the same bits.
// FAILED_PRECONDITION names the rank and both values of the first difference.
absl::Status CheckHello(const v1::Hello& leader, const v1::Hello& follower);

}  // namespace lockstep
