#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "proto/worker.grpc.pb.h"

namespace lockstep::testing {

// One request to a worker group, from its first event to its one end.
//
//   Client client(channel, {.request = request});
//   if (!client.WaitForTokens(limit)) …
//   …something happens to the group…
//   if (!client.WaitForEnd(limit)) …
//   LOCKSTEP_RETURN_IF_ERROR(client.CheckEnd());
//
// Used by one thread; it reads on a thread of its own, "client", which the
// destructor ends and joins.
class Client {
 public:
  struct Options {
    v1::WorkerGenerateRequest request;
    absl::Duration deadline = absl::InfiniteDuration();
    uint32_t cancel_after_tokens = 0;  // 0: never
    // Reads the first tokens and then nothing, until ReadOn.
    bool stalls = false;
  };

  enum class End { kSummary, kUnavailable, kCancelled, kDeadline, kRefused };
  static constexpr int kNumEnds = 5;

  Client(const std::shared_ptr<grpc::Channel>& channel, const Options& options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // False when that took longer, or the call ended before.
  bool WaitForAcceptance(absl::Duration timeout);
  bool WaitForTokens(absl::Duration timeout);

  // False when it has not ended in time.
  bool WaitForEnd(absl::Duration timeout);

  void ReadOn();

  // Whether the call, which has ended, had exactly one terminal event, last,
  // after one finish of each choice or a status that its options or the end of
  // a group explain. The sentence says what else it had.
  absl::Status CheckEnd() const;

  // The rank that the end names, where it is that of a failed group.
  std::optional<int> failed_rank() const;

  // REQUIRES: it has ended with one that CheckEnd accepts.
  End end() const;

 private:
  bool MayFollowASummary(const grpc::Status& status) const;
  void Read();
  void Count(const v1::WorkerGenerateResponse& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::unique_ptr<v1::Worker::Stub> stub_;
  grpc::ClientContext context_;

  mutable absl::Mutex mutex_;
  bool accepted_ ABSL_GUARDED_BY(mutex_) = false;
  bool may_read_on_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t finishes_ ABSL_GUARDED_BY(mutex_) = 0;
  int summaries_ ABSL_GUARDED_BY(mutex_) = 0;
  int after_the_end_ ABSL_GUARDED_BY(mutex_) = 0;  // events
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace lockstep::testing
