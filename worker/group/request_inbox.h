#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/group.pb.h"

namespace lockstep {

// Where the leader's services put what happens, and its frame source takes it
// from: serialized RankMessages, in order of arrival.
//
//   LOCKSTEP_RETURN_IF_ERROR(inbox.Add(request));     // a service thread
//   inbox.Drain(/*idle=*/true, max_messages, &messages);  // the step thread
//
// Bounded: a request counts as queued, with its prompt tokens, from Add until
// Release, which comes when its first step is planned or it ends before; at
// either limit Add is refused. Aborts and the stop are never refused; there are
// no more of them than live requests, as an abort that is already waiting is
// not added again. Any thread.
class RequestInbox {
 public:
  struct Limits {
    int max_queued_requests = 256;
    int64_t max_queued_tokens = 0;  // at least the longest prompt
  };

  struct Queued {
    int requests = 0;
    int64_t tokens = 0;  // of their prompts
  };

  explicit RequestInbox(const Limits& limits) : limits_(limits) {}

  // RESOURCE_EXHAUSTED says which limit; UNAVAILABLE after Stop or Close.
  absl::Status Add(const v1::AddRequest& request);
  void Release(const v1::AddRequest& request);

  void Abort(const v1::AbortSequences& abort);

  // The last message: all that comes after it is dropped or refused.
  void Stop();

  // The group failed: Add and Drain return `status` from now on.
  void Close(absl::Status status);

  // Appends the waiting messages, at most `max_messages`, oldest first. While
  // `idle` it blocks until there is one.
  absl::Status Drain(bool idle, size_t max_messages,
                     std::vector<std::string>* messages);

  Queued queued() const;

 private:
  void Push(const v1::RankMessage& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  mutable absl::Mutex mutex_;
  std::vector<std::string> messages_ ABSL_GUARDED_BY(mutex_);
  // Of the aborts in messages_: request and choice, or kAllChoices.
  std::set<std::pair<uint64_t, int64_t>> aborts_ ABSL_GUARDED_BY(mutex_);
  Queued queued_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
