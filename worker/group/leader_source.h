#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "worker/group/frame_codec.h"
#include "worker/group/frame_source.h"
#include "worker/group/group_failure.h"
#include "worker/group/heartbeat_counts.h"
#include "worker/group/heartbeat_timer.h"
#include "worker/group/io_thread.h"
#include "worker/group/link.h"
#include "worker/group/membership.h"
#include "worker/group/peer_watch.h"
#include "worker/group/request_inbox.h"
#include "worker/group/step_progress.h"

namespace lockstep {

// The leader's frames: what the inbox holds, numbered, written once, sent to
// every follower, and applied from the very same bytes. Sending only appends to
// each follower's queue, so a slow follower does not delay the leader's plan;
// one that falls further behind than its queue holds has failed.
//
// It watches the followers, by their links and by heartbeats, and tells them by
// its own where it is: one that leaves, is silent or behind, says that it
// failed, or sends what makes no sense, is reported to `failure`; at a failure
// it tells the others.
class LeaderSource final : public FrameSource {
 public:
  // `inbox` and `failure` must outlive this. A group of one has no links.
  // `on_loaded` is told of each follower that has loaded the model, at least
  // once, on the I/O thread.
  LeaderSource(Membership membership, RequestInbox* inbox,
               GroupFailure* failure, const PeerWatch::Options& watch = {},
               const Link::Options& link = {},
               std::function<void(int rank)> on_loaded = nullptr);
  ~LeaderSource() override;

  // Of this rank, for its step loop. Null in a group of one.
  StepProgress* progress() { return followers_.empty() ? nullptr : &progress_; }

  // Of the followers, that have come.
  const HeartbeatCounts& heartbeats() const { return heartbeats_; }

  absl::Status Next(bool idle, Frame* frame) override;
  absl::Status Agree(const Digest& digest) override;

  // After the frame with the stop: waits until every follower has said that it
  // left, or the group has failed, which it returns. One that does not leave in
  // time is reported.
  absl::Status WaitForFollowers(absl::Duration timeout);

  // Tells the followers whose failure ended the group. Does not block; called
  // from a hook of `failure`.
  void TellFailure(const GroupFailure::Cause& cause);

 private:
  struct Follower {
    int rank = 0;
    // On the I/O thread.
    ReportReader reports;
    bool has_left = false;
    std::unique_ptr<Link> link;
  };

  void Beat();
  void OnBytes(Follower& follower, absl::string_view bytes);
  void OnReport(Follower& follower, const v1::FollowerReport& report);
  void OnClosed(const Follower& follower, const absl::Status& why);
  bool IsWronglyMissedBy(const v1::FirstFailure& failure) const;
  void SendToAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_mutex_);

  const uint64_t epoch_;
  RequestInbox* const inbox_;
  GroupFailure* const failure_;
  const std::function<void(int rank)> on_loaded_;
  const std::unique_ptr<IoThread> io_;
  std::vector<std::unique_ptr<Follower>> followers_;

  HeartbeatCounts heartbeats_;
  StepProgress progress_;
  // On the I/O thread.
  PeerWatch watch_;
  std::optional<HeartbeatTimer> heartbeat_;
  std::string heartbeat_bytes_;

  uint64_t step_ = 0;  // step thread

  // Frames and the failure leave one after the other.
  absl::Mutex send_mutex_;
  std::atomic<bool> told_failure_ = false;          // written under send_mutex_
  std::string bytes_ ABSL_GUARDED_BY(send_mutex_);  // being sent

  // Not absl's: see common/time/steady_wait.h. Guards all below.
  std::mutex left_mutex_;
  std::condition_variable left_changed_;
  std::set<int> left_;  // ranks that said so, with no failure
  bool has_failed_ = false;
};

}  // namespace lockstep
