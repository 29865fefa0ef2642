#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tests/testing/fake_engine.h"
#include "tests/testing/output_recorder.h"
#include "tests/testing/ranks/wire_tap.h"
#include "worker/engine/engine.h"
#include "worker/group/follower_source.h"
#include "worker/group/frame_source.h"
#include "worker/group/group_failure.h"
#include "worker/group/leader_source.h"
#include "worker/group/peer_watch.h"
#include "worker/group/request_inbox.h"
#include "worker/runtime/silent_sink.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep::testing {

// Lets a test change what a rank reads and says, or see when it does.
class TappedSource final : public FrameSource {
 public:
  explicit TappedSource(std::unique_ptr<FrameSource> source)
      : source_(std::move(source)) {}

  absl::Status Next(bool idle, Frame* frame) override {
    absl::Status status = source_->Next(idle, frame);
    if (status.ok() && tap) tap(*frame);
    return status;
  }
  absl::Status Agree(const Digest& digest) override {
    digests.push_back(digest);
    return source_->Agree(tap_digest ? tap_digest(digest) : digest);
  }

  std::function<void(Frame&)> tap;
  std::function<Digest(const Digest&)> tap_digest;
  std::vector<Digest> digests;  // as the rank computed them

 private:
  const std::unique_ptr<FrameSource> source_;
};

// A rank as a thread of the test: its real source, scheduler and step loop, and
// a fake engine.
struct ThreadRank {
  ThreadRank(int rank, const SchedulerOptions& scheduler, uint32_t vocabulary);

  // Of this rank's loop. Its result is in `result` once `thread` has ended.
  void Start(OutputSink* sink,
             std::function<void(const SchedulerStats&)> on_step_end);

  const int rank;
  SchedulerOptions scheduler;
  absl::Duration step_timeout = absl::InfiniteDuration();
  GroupFailure failure;
  FakeEngine engine;
  std::unique_ptr<Engine> device;  // in its place, unless null
  StepProgress* progress = nullptr;
  std::unique_ptr<TappedSource> source;
  std::thread thread;
  absl::Status result;
};

// A group of them, over loopback sockets.
//
//   ThreadGroup group(3);
//   group.Add(1, {1, 2, 3}, 10);
//   group.Start();
//   group.StopWhenAllEnded();
//   group.Join();
class ThreadGroup {
 public:
  static constexpr uint32_t kVocabulary = 1000;
  static const SchedulerOptions kScheduler;

  // `changes`: of the connections of followers 1, 2, …, which have a WireTap
  // then.
  explicit ThreadGroup(int size, const PeerWatch::Options& watch = {},
                       std::vector<WireTap::Change> changes = {});
  ~ThreadGroup();

  void Start();

  // After the last Add.
  void StopWhenAllEnded();

  // Until every rank's loop has ended.
  void Join();

  void Add(uint64_t number, const std::vector<uint32_t>& prompt,
           uint32_t max_tokens);
  void Abort(uint64_t number);

  std::vector<std::unique_ptr<ThreadRank>> ranks;
  RequestInbox inbox{
      {.max_queued_requests = 1000, .max_queued_tokens = 100'000}};
  std::vector<v1::AddRequest> requests;
  // The leader's; of its step thread until Join.
  OutputRecorder outputs;
  SchedulerStats leader_stats;
  std::function<void()> at_step_end;  // the leader's; may be empty

 private:
  bool HaveAllEnded();

  // Gives `follower` its source; returns the leader's end.
  boost::asio::ip::tcp::socket Connect(boost::asio::io_context& leader,
                                       ThreadRank& follower,
                                       const WireTap::Change& change);

  const PeerWatch::Options watch_;
  std::vector<std::unique_ptr<WireTap>> taps_;
  SilentSink silent_;
  std::atomic<bool> stop_when_all_ended_ = false;
};

}  // namespace lockstep::testing
