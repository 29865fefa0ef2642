#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "proto/worker.pb.h"
#include "worker/group/request_inbox.h"
#include "worker/service/admission.h"
#include "worker/service/output_router.h"

namespace lockstep {

// How the leader stops: no new requests, the live ones to their end, then the
// stop message, which ends every rank's step loop. And the same without the
// end, for those who take a group out of service for a while.
//
//   Drain drain(&admission, &router, &inbox);
//   drain.Begin();  // at the first signal
//   drain.Hurry();  // at the second one, or when it takes too long
//
//   drain.Pause(std::nullopt);  // the calls Drain and Undrain
//   drain.Resume();
//
// Any thread; no call blocks, unless it logs.
class Drain {
 public:
  // `router` and `inbox` must outlive this, and this `admission`, which times
  // its pauses.
  Drain(Admission* admission, OutputRouter* router, RequestInbox* inbox);

  // Logs nothing, as nobody may read it; LogBegin does.
  void Begin();
  void LogBegin();

  // Ends the live requests, and the calls whose clients have not read all of an
  // ended one, with UNAVAILABLE.
  void Hurry();

  // Requests that are live after `timeout` end with UNAVAILABLE, unless it is
  // resumed. The last call's timeout holds.
  void Pause(std::optional<std::chrono::milliseconds> timeout);

  // FAILED_PRECONDITION after Begin, or when the group has failed.
  absl::Status Resume();

  v1::DrainResponse state() const;

 private:
  void EndLive(const absl::Status& status);
  void OnTimeout(uint64_t pause);
  void CancelTimeout() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Admission* const admission_;
  OutputRouter* const router_;
  RequestInbox* const inbox_;

  std::atomic<int> num_live_at_begin_ = 0;
  absl::Mutex mutex_;
  uint64_t pause_ ABSL_GUARDED_BY(mutex_) = 0;  // counts Pause and Resume
  uint64_t timer_ ABSL_GUARDED_BY(mutex_) = 0;  // of the last Pause; 0: none
};

}  // namespace lockstep
