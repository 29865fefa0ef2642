#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <absl/types/span.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "proto/group.pb.h"
#include "worker/group/request_inbox.h"
#include "worker/service/output_router.h"
#include "worker/service/output_stream.h"

namespace lockstep {

// The one door by which requests enter the group, and leave it before their
// time. Numbers them, from 1, in the order in which they reach the inbox.
//
//   admission.Open();
//   LOCKSTEP_ASSIGN_OR_RETURN(auto stream, admission.Submit("id", request));
//   admission.Abort(*stream, {}, v1::CLIENT_CANCELLED);
//   admission.Leave(*stream);  // at the end of its call
//
// Any thread.
class Admission {
 public:
  // Both must outlive this.
  Admission(RequestInbox* inbox, OutputRouter* router,
            const OutputStream::Options& options);

  // Submit is UNAVAILABLE until Open, and from Close on; false after that.
  bool Open();
  void Close(absl::string_view why);

  // `request` is validated, `request_id` its client's name for it; one is made
  // when that is empty. UNAVAILABLE while closed, ALREADY_EXISTS,
  // RESOURCE_EXHAUSTED. The call is open until Leave.
  absl::StatusOr<std::shared_ptr<OutputStream>> Submit(
      const std::string& request_id, v1::AddRequest request);

  // The same, closed or not, and for nobody's call: for the warm-up.
  absl::StatusOr<std::shared_ptr<OutputStream>> SubmitAnyway(
      const std::string& request_id, v1::AddRequest request);

  // All choices when `choices` is empty.
  void Abort(OutputStream& stream, absl::Span<const uint32_t> choices,
             v1::AbortCause cause);

  // The call for `stream` is over: nothing of it will be sent any more.
  void Leave(const OutputStream& stream);

  // Ends the streams of all open calls with `status`, even where the group is
  // done with the request and only its client is not.
  void EndCalls(const absl::Status& status);

  // Waits until no call is open, or until EndCalls. REQUIRES: closed.
  void WaitForCalls();

 private:
  absl::StatusOr<std::shared_ptr<OutputStream>> SubmitLocked(
      const std::string& request_id, v1::AddRequest request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  RequestInbox* const inbox_;
  OutputRouter* const router_;
  const OutputStream::Options options_;
  const std::string id_prefix_;  // of ids made here; differs between leaders

  // Held from numbering to the inbox, so that numbers arrive in order, and no
  // abort before its request.
  absl::Mutex mutex_;
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
  bool closed_for_good_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<uint64_t, std::shared_ptr<OutputStream>> open_calls_
      ABSL_GUARDED_BY(mutex_);  // by number
  bool calls_were_ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep
