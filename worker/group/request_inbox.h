#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/group.pb.h"
#include "worker/group/queue_pace.h"

namespace lockstep {

// Where the leader's services put what happens, and its frame source takes it
// from: serialized RankMessages, in order of arrival.
//
//   LOCKSTEP_RETURN_IF_ERROR(inbox.Add(request));     // a service thread
//   inbox.Drain(/*idle=*/true, max_messages, &messages);  // the step thread
//
// Bounded: a request counts as queued, with its prompt tokens, from Add until
// Release, which comes when its first step is planned or it ends before; at
// either limit Add is refused. Aborts and the stop are never refused; an abort
// that is already waiting is not added again, so of each request no more wait
// than it has choices, and one of all. Of grammars no more bytes wait than a
// limit, and none that was released before any rank was told of it. Any thread.
class RequestInbox {
 public:
  struct Limits {
    int max_queued_requests = 256;
    int64_t max_queued_tokens = 0;  // at least the longest prompt
    size_t max_grammar_bytes = 64 << 20;
  };

  struct Waiting {
    int sequences = 0;
    int64_t tokens = 0;  // to compute, of all sequences
  };

  explicit RequestInbox(const Limits& limits) : limits_(limits) {}

  // RESOURCE_EXHAUSTED says which limit, and when to try again; UNAVAILABLE
  // after Stop or Close; INVALID_ARGUMENT when no frame can hold it.
  absl::Status Add(const v1::AddRequest& request);
  void Release(const v1::AddRequest& request);

  // What Add would say of the queue now: for who has work to do before.
  absl::Status CheckRoom(const v1::AddRequest& request) const;

  // REQUIRES: the request has been added and has its choices.
  void Abort(const v1::AbortSequences& abort);

  // Whether the grammar's bytes have room beside those that wait, else
  // RESOURCE_EXHAUSTED.
  absl::Status CheckGrammarRoom(const v1::Grammar& grammar) const;

  // For all ranks, in order with the requests. REQUIRES: it has room.
  void Prepare(uint64_t number, const v1::Grammar& grammar);

  // False where no rank hears of it: what prepares it still waited, and is
  // taken back.
  bool ReleaseGrammar(uint64_t number);

  // The last message: all that comes after it is dropped or refused.
  void Stop();

  // The group failed: Add and Drain return `status` from now on.
  void Close(absl::Status status);

  // Appends the waiting messages, oldest first: at most `max_messages`, and no
  // more bytes than a frame holds. While `idle` it blocks until there is one.
  absl::Status Drain(bool idle, size_t max_messages,
                     std::vector<std::string>* messages);

  // What the ranks have not been told of, or are being told of until the next
  // Drain.
  Waiting waiting() const;

 private:
  struct Message {
    std::string bytes;
    Waiting waiting;
    uint64_t prepares = 0;  // a grammar's number
  };

  absl::Status CheckAdd(int64_t tokens) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Push(const v1::RankMessage& message, const Waiting& waiting)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  mutable absl::Mutex mutex_;
  std::list<Message> messages_ ABSL_GUARDED_BY(mutex_);
  // Those of messages_ that prepare a grammar, by its number.
  std::map<uint64_t, std::list<Message>::iterator> prepares_
      ABSL_GUARDED_BY(mutex_);
  size_t grammar_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of these
  // Of the aborts in messages_: request and choice, or kAllChoices.
  std::set<std::pair<uint64_t, int64_t>> aborts_ ABSL_GUARDED_BY(mutex_);
  int queued_requests_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t queued_tokens_ ABSL_GUARDED_BY(mutex_) = 0;  // of their prompts
  QueuePace pace_ ABSL_GUARDED_BY(mutex_);
  Waiting waiting_ ABSL_GUARDED_BY(mutex_);  // of messages_
  Waiting drained_ ABSL_GUARDED_BY(mutex_);  // by the last Drain
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
