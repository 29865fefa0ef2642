#pragma once

#include <absl/status/status.h>

#include <string>

#include "proto/group.pb.h"

namespace lockstep {

// Whether a follower's Hello fits the leader's own: a rank of this group, of
// the same size, build, model and flags, and on the same host where ranks share
// memory. Instruction sets and numbers of threads may differ: they change no
// bit.
// FAILED_PRECONDITION names the rank, its host and both values of the first
// difference.
absl::Status CheckHello(const v1::Hello& leader, const v1::Hello& follower);

// "rank 1 on node-b": where a rank says it runs.
std::string NameOf(const v1::Hello& hello);

}  // namespace lockstep
