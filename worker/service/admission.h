#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <absl/types/span.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/timer_thread.h"
#include "proto/group.pb.h"
#include "proto/worker.pb.h"
#include "worker/group/request_inbox.h"
#include "worker/service/admission_state.h"
#include "worker/service/output_router.h"
#include "worker/service/output_stream.h"
#include "worker/service/request_counts.h"

namespace lockstep {

// The one door by which requests enter the group, and leave it before their
// time: when they are aborted, or their deadline passes. Numbers them, from 1,
// in the order in which they reach the inbox, and counts them.
//
//   admission.Open();
//   LOCKSTEP_ASSIGN_OR_RETURN(auto stream,
//                             admission.Submit("id", request, deadline));
//   admission.End(*stream, v1::SHUTDOWN, absl::UnavailableError("…"));
//   admission.Leave(*stream);  // at the end of its call
//
// Any thread.
class Admission {
 public:
  using Clock = TimerThread::Clock;

  static constexpr Clock::time_point kNoDeadline = Clock::time_point::max();

  struct Options {
    OutputStream::Options stream;
    // A client that takes nothing for so long of an answer that has ended loses
    // the rest of it.
    std::chrono::milliseconds read_timeout = std::chrono::seconds(30);
  };

  // Both must outlive this.
  Admission(RequestInbox* inbox, OutputRouter* router, const Options& options);
  ~Admission();

  // `changed` is told each new state: before it ceases to be SERVING, after any
  // other change; one call at a time, in order. Before the others; of this it
  // may call state() alone.
  void OnState(std::function<void(v1::ServingState)> changed);

  // Submit is UNAVAILABLE but in the state SERVING. It is STARTING until Open;
  // Drain and Undrain say what follows from there. Close is for good, `state`
  // and `why` are the last one's.
  void Open();
  void Drain();
  absl::Status Undrain();  // FAILED_PRECONDITION after Close
  void Close(v1::ServingState state, const absl::Status& why);
  v1::ServingState state() const;

  // `request` is validated, `request_id` its client's name for it; one is made
  // when that is empty. UNAVAILABLE while closed, ALREADY_EXISTS,
  // RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED. The call is open until Leave; at
  // `deadline` it is ended as by Expire. `caller` is for the log.
  absl::StatusOr<std::shared_ptr<OutputStream>> Submit(
      const std::string& request_id, v1::AddRequest request,
      Clock::time_point deadline = kNoDeadline, std::string caller = "");

  // What Submit would say now: for who has work to do before. Not OK: a refusal
  // that counts as Submit's.
  absl::Status Check(const v1::AddRequest& request);

  // The same as Submit, closed or not, for nobody's call and not metered: for
  // the warm-up.
  absl::StatusOr<std::shared_ptr<OutputStream>> SubmitAnyway(
      const std::string& request_id, v1::AddRequest request);

  // Ends the choices, all when `choices` is empty, with a finish: ABORTED.
  void Abort(OutputStream& stream, absl::Span<const uint32_t> choices,
             v1::AbortCause cause);

  // Ends the stream with `status`, unless it has ended before, and aborts the
  // request, queued or running.
  void End(OutputStream& stream, v1::AbortCause cause,
           const absl::Status& status);

  // Its deadline has passed: ends it with DEADLINE_EXCEEDED.
  void Expire(OutputStream& stream);

  // The call for `stream` is over: nothing of it will be sent any more.
  void Leave(const OutputStream& stream);

  v1::RequestCounts counts() const { return counts_.counts(); }
  std::map<std::string, uint64_t> refusals() const {
    return counts_.refusals();
  }
  // For what else ends requests at a time.
  TimerThread& timers() { return timers_; }

  // Ends the streams of all open calls with `status`, even where the group is
  // done with the request and only its client is not.
  void EndCalls(const absl::Status& status);

  // Waits until no call is open, or until EndCalls. REQUIRES: closed.
  void WaitForCalls();

 private:
  struct OpenCall {
    std::shared_ptr<OutputStream> stream;
    uint64_t timer = 0;  // of its deadline, then of its reading; 0: none
  };

  absl::StatusOr<std::shared_ptr<OutputStream>> SubmitLocked(
      const std::string& request_id, v1::AddRequest request,
      const OutputStream::Options& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<OutputStream>> SubmitCall(
      const std::string& request_id, v1::AddRequest request,
      Clock::time_point deadline, std::string caller);
  // Its request has ended, its call has not.
  void Linger(const OutputStream& stream);
  // Its client had taken `num_taken` a read_timeout ago.
  void LookAfter(OutputStream& stream, uint64_t num_taken);
  AdmissionState Now() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Tells `changed_` what comes of it.
  void Change(const AdmissionState& next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_mutex_);

  RequestInbox* const inbox_;
  OutputRouter* const router_;
  const Options options_;
  const std::string id_prefix_;  // of ids made here; differs between leaders

  RequestCounts counts_;

  // Held from a change of the state to the end of `changed_`.
  absl::Mutex state_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::function<void(v1::ServingState)> changed_ ABSL_GUARDED_BY(state_mutex_);

  // Held from numbering to the inbox, so that numbers arrive in order, and no
  // abort before its request.
  mutable absl::Mutex mutex_;
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  AdmissionState state_ ABSL_GUARDED_BY(mutex_);  // changed under both
  std::map<uint64_t, OpenCall> open_calls_
      ABSL_GUARDED_BY(mutex_);  // by number
  bool calls_were_ended_ ABSL_GUARDED_BY(mutex_) = false;

  TimerThread timers_;  // the last: its thread uses all above
};

}  // namespace lockstep
