#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <thread>
#include <utility>

#include "frontend/routing/worker_client.h"
#include "proto/worker.pb.h"

namespace lockstep {

// Follows the load that a group reports, at most five times a second and at
// least once, for as long as it can be reached; again when it is back.
//
//   LoadWatch watch(&client, [&](const v1::Load& load) { … });
//   watch.Start();
//
// `on_load` is called on the watch's thread. Start and Stop are the owner's,
// once each; nothing is called after Stop.
class LoadWatch {
 public:
  LoadWatch(WorkerClient* client,
            std::function<void(const v1::Load& load)> on_load)
      : client_(client), on_load_(std::move(on_load)) {}
  ~LoadWatch() { Stop(); }
  LoadWatch(const LoadWatch&) = delete;
  LoadWatch& operator=(const LoadWatch&) = delete;

  void Start();
  void Stop();

 private:
  void Follow();      // the thread
  void FollowOnce();  // one connection, until it breaks
  bool SetActive(grpc::ClientContext* context);  // false: it is to end
  bool IsStopping() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_;
  }

  WorkerClient* const client_;
  const std::function<void(const v1::Load&)> on_load_;

  absl::Mutex mutex_;
  grpc::ClientContext* active_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // "load-watch"; joined by Stop
};

}  // namespace lockstep
