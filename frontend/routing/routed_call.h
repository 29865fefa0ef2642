#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <absl/types/span.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/routing/group_set.h"
#include "frontend/routing/resilience/retry_plan.h"
#include "frontend/routing/resilience/silence_watch.h"
#include "frontend/routing/resume_point.h"
#include "frontend/routing/worker_call.h"

namespace lockstep {

// What a client is told whose answer took longer than an answer may.
std::string TooLateMessage(absl::Duration request_timeout);

// One request, at one group after another until it has its answer. To its
// listener it is one WorkerCall: a group that is lost is replaced by another
// that gives the same bits, and the messages go on where they were.
//
//   auto call = std::make_shared<RoutedCall>(&groups, request, metadata,
//                                            deadline, this);
//   call->Start();                      // then OnMessage or OnEnd
//   void OnMessage(message) { …; call_->Next(); }
//
// Start is called once; it and Next may call the listener before they return.
// Cancel can be called at any time, from any thread. Held until OnEnd, and may
// be let go of in it.
class RoutedCall : public std::enable_shared_from_this<RoutedCall>,
                   private WorkerCall::Listener {
 public:
  // `metadata` goes with the call to each group.
  RoutedCall(GroupSet* groups, v1::WorkerGenerateRequest request,
             CallMetadata metadata,
             std::chrono::system_clock::time_point deadline,
             WorkerCall::Listener* listener);

  void Start();
  void Next();
  void Cancel();

  // These choices are at their ends: no group need compute them further. From
  // within OnMessage.
  void AbortChoices(const std::vector<uint32_t>& choices);

  // How often another group has gone on with the answer. In OnMessage and
  // OnEnd.
  int failovers() const { return failovers_; }

 private:
  // The attempt at work, on gRPC's threads.
  void OnMessage(const v1::WorkerGenerateResponse& message) override;
  void OnEnd(absl::Status status) override;

  void Attempt();       // at a group that is to be found
  void AttemptLater();  // after a delay, on the thread "timers"
  void OnWaitOver();
  void AttemptAt(GroupSet::Lease lease);
  void NoGroup();
  void AwaitGroup(absl::Time until);
  absl::Status WhyNoGroup() const;
  // Whether there may be another attempt after one that ended so.
  bool MayFollow(const absl::Status& status, FailureKind kind);
  void NoteProgress(const v1::WorkerGenerateResponse& message);
  void DeliverOwed();
  void End(absl::Status status);  // *this may be gone afterwards

  // Cancels the attempt if its group was silent for too long; looks again.
  void LookForSilence();
  // What an attempt that ended with `status`, and is not all there is to it,
  // ended of.
  absl::Status Describe(const absl::Status& status,
                        absl::Duration silent_for) const;
  absl::Status DescribeDeadline(const absl::Status& status) const;

  GroupSet* const groups_;
  WorkerCall::Listener* const listener_;
  const CallMetadata metadata_;
  const std::chrono::system_clock::time_point client_deadline_;
  const std::chrono::system_clock::time_point deadline_;

  // Of one event at a time: a message, an end, an attempt.
  ResumePoint point_;
  RetryPlan plan_;
  std::optional<GroupSet::Lease> lease_;
  std::shared_ptr<const ServedModel> began_with_;  // once there are tokens
  // Groups, since the last token, or since all were.
  std::vector<std::shared_ptr<const ServedModel>> tried_;
  absl::Status last_failure_;
  std::deque<v1::WorkerGenerateResponse> owed_;  // to the listener
  v1::WorkerGenerateResponse delivered_;         // the last of them
  int failovers_ = 0;

  absl::Mutex mutex_;
  std::shared_ptr<WorkerCall> call_ ABSL_GUARDED_BY(mutex_);
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  SilenceWatch silence_ ABSL_GUARDED_BY(mutex_);
  // How long its group was, when the attempt was cancelled for it.
  absl::Duration silent_for_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
  uint64_t wait_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t silence_timer_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep
