#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <string>

#include "proto/group.pb.h"
#include "worker/group/membership.h"

namespace lockstep {

// Joins the group of the leader at `address`, which need not listen yet, and
// waits until every rank has. Starts no thread.
//
// FAILED_PRECONDITION is the leader's refusal; DEADLINE_EXCEEDED names the
// leader's address and how far it got; INVALID_ARGUMENT the flag
// --leader_address.
absl::StatusOr<Membership> JoinGroup(const std::string& address,
                                     const v1::Hello& own,
                                     absl::Duration timeout,
                                     absl::Duration report_every);

}  // namespace lockstep
