#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "worker/group/group_failure.h"
#include "worker/group/step_progress.h"

namespace lockstep {

// Decides from heartbeats which rank of a group has failed: one that is silent,
// one that lags, and, when a step does not end, the one the others wait for.
//
//   PeerWatch watch(/*own_rank=*/0, {1, 2}, options);
//   watch.Heard(2, heartbeat);        // whatever arrives
//   const auto cause = watch.Beat(progress.Read());  // at each own heartbeat
//
// Time is counted in this rank's own heartbeats. So a process that was stopped,
// alone or with all others, blames nobody for the time in which it did not run
// itself. One thread; no clock, no I/O.
class PeerWatch {
 public:
  struct Options {
    // Between two heartbeats, the same on all ranks.
    absl::Duration interval = absl::Milliseconds(500);
    // A rank that is silent, or behind, for longer has failed.
    absl::Duration timeout = absl::Seconds(10);
  };

  // The leader watches all other ranks and decides for all; a follower has its
  // link to the leader alone, and watches that.
  PeerWatch(int own_rank, const std::vector<int>& peers,
            const Options& options);

  absl::Duration timeout() const { return options_.timeout; }

  // Bytes of the rank have arrived; with the last heartbeat among them.
  void Heard(int rank);
  void Heard(int rank, const v1::Heartbeat& heartbeat);

  // The rank left in good order.
  void Forget(int rank);

  // The first rank that has failed, if one has. `own` is where this rank is.
  std::optional<GroupFailure::Cause> Beat(const v1::Heartbeat& own);

 private:
  struct Peer {
    int rank = 0;
    int64_t silent_beats = 0;
    v1::Heartbeat last = {};  // all zeros until the first
    int64_t beats_since_last = 0;
  };

  bool is_leader() const { return own_rank_ == 0; }
  Peer* Find(int rank);

  std::optional<GroupFailure::Cause> FindSilent(const v1::Heartbeat& own,
                                                int64_t max_silent_beats) const;
  std::optional<GroupFailure::Cause> FindLagging(const v1::Heartbeat& own);
  std::optional<GroupFailure::Cause> FindAwaited(const v1::Heartbeat& own);
  // The rank that says so, and the step; nothing while no step is overdue.
  std::optional<std::pair<int, uint64_t>> FindOverdue(
      const v1::Heartbeat& own) const;

  const int own_rank_;
  const Options options_;
  const int64_t timeout_beats_;
  std::vector<Peer> peers_;
  // The leader's finished step at each of its last beats, oldest first.
  std::deque<uint64_t> finished_;
  int64_t overdue_beats_ = 0;  // since a step was first known to be overdue
};

}  // namespace lockstep
