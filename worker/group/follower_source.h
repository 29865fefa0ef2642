#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "worker/group/frame_codec.h"
#include "worker/group/frame_source.h"
#include "worker/group/group_failure.h"
#include "worker/group/heartbeat_counts.h"
#include "worker/group/heartbeat_timer.h"
#include "worker/group/io_thread.h"
#include "worker/group/link.h"
#include "worker/group/membership.h"
#include "worker/group/peer_watch.h"
#include "worker/group/step_progress.h"

namespace lockstep {

// A follower's frames: exactly what the leader sent, read on the I/O thread and
// queued. The leader is rarely more than a step ahead; the queue is bounded,
// and a follower that falls further behind has failed.
//
// The end of the leader or its silence, its word that the group failed, and
// bytes that make no sense are reported to `failure`. Its own heartbeats tell
// the leader where it is.
class FollowerSource final : public FrameSource {
 public:
  struct Options {
    size_t max_unread_bytes = size_t{256} << 20;
    size_t max_unread_frames = 8192;
    PeerWatch::Options watch = {};
  };

  // `failure` must outlive this.
  FollowerSource(int rank, Membership membership, GroupFailure* failure,
                 const Options& options);
  ~FollowerSource() override;

  // Of this rank, for its step loop.
  StepProgress* progress() { return &progress_; }

  // Of the leader, that have come.
  const HeartbeatCounts& heartbeats() const { return heartbeats_; }

  // This rank has loaded the model: the leader hears it at once, and again with
  // each heartbeat.
  void TellLoaded();

  absl::Status Next(bool idle, Frame* frame) override;
  absl::Status Agree(const Digest& digest) override;

  // After the frame with the stop: the last words to the leader.
  void Leave();

  // Ends a call that waits, and tells the leader what it did not say itself: it
  // may be the one that is at fault, and stopped. Does not block; called from a
  // hook of `failure`.
  void TellFailure(const GroupFailure::Cause& cause);

 private:
  void Beat();
  void OnBytes(absl::string_view bytes);
  void OnClosed(const absl::Status& why);
  void OnEvent(FrameReader::Event event);
  void Push(Frame frame);
  void SendReport(const v1::FollowerReport& report);
  bool HasFrameOrClosed() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return closed_ || !frames_.empty();
  }
  bool HasDigestOrClosed() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return closed_ || !digests_.empty();
  }

  const int rank_;
  const Options options_;
  GroupFailure* const failure_;
  const std::unique_ptr<IoThread> io_;
  std::unique_ptr<Link> link_;
  HeartbeatCounts heartbeats_;
  StepProgress progress_;
  // On the I/O thread.
  FrameReader reader_;
  PeerWatch watch_;
  HeartbeatTimer heartbeat_;

  std::atomic<bool> told_by_leader_ = false;  // of the failure

  absl::Mutex mutex_;
  std::deque<Frame> frames_ ABSL_GUARDED_BY(mutex_);
  std::deque<Digest> digests_ ABSL_GUARDED_BY(mutex_);
  size_t unread_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of frames_
  uint64_t step_ ABSL_GUARDED_BY(mutex_) = 0;        // the last one read
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep
