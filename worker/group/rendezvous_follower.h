#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <functional>
#include <string>

#include "proto/group.pb.h"
#include "worker/group/membership.h"

namespace lockstep {

struct JoinOptions {
  absl::Duration timeout = absl::Seconds(120);
  absl::Duration report_every = absl::Seconds(5);
  // Asked several times a second; an error, of a local rank that has ended,
  // ends the wait. May be empty.
  std::function<absl::Status()> check;
};

// Joins the group of the leader at `address`, which need not listen yet, and
// waits until every rank has. Starts no thread.
//
// FAILED_PRECONDITION is the leader's refusal; UNAVAILABLE a leader that has
// taken the Hello and is gone before it answered; DEADLINE_EXCEEDED names the
// leader's address and how far it got; INVALID_ARGUMENT the flag
// --leader_address.
absl::StatusOr<Membership> JoinGroup(const std::string& address,
                                     const v1::Hello& own,
                                     const JoinOptions& options);

}  // namespace lockstep
