#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "frontend/routing/served_model.h"
#include "frontend/routing/worker_client.h"
#include "proto/worker.pb.h"

namespace lockstep {

// By what a model is told to be the tokenizer's.
struct TokenizerIdentity {
  uint32_t vocabulary_size = 0;
  // See ModelInfo. A worker that says none is known by its size alone.
  std::string tokens_digest = {};
};

// Knows whether the worker can take requests, and for which model. A thread
// follows the worker's health; a worker that comes, goes or is replaced is
// noticed at once, in any order of start.
//
//   WorkerMonitor monitor(&client, {.vocabulary_size = 259, .tokens_digest =
//   digest}); monitor.Start([&] { server.SetServing(monitor.Model().ok()); });
//   LOCKSTEP_ASSIGN_OR_RETURN(ServedModel model, monitor.Model());
class WorkerMonitor {
 public:
  // A model with fewer ids than the tokenizer, with many more, or whose ids
  // stand for other texts, is not the tokenizer's, and never ready. `client`
  // must outlive this.
  WorkerMonitor(WorkerClient* client, const TokenizerIdentity& tokenizer);
  ~WorkerMonitor() { Stop(); }
  WorkerMonitor(const WorkerMonitor&) = delete;
  WorkerMonitor& operator=(const WorkerMonitor&) = delete;

  // Once. `on_change` is called on the monitor's thread after Model() turned
  // from not ready to ready or back.
  void Start(std::function<void()> on_change);
  // Model() stays as it is from here on, and on_change is not called any more.
  void Stop();

  // Any thread. UNAVAILABLE says what is amiss and names the address; its
  // reason is the worker's.
  absl::StatusOr<ServedModel> Model() const;

 private:
  void Follow();      // the thread
  void FollowOnce();  // one connection, until it breaks
  absl::StatusOr<ServedModel> FetchModel();
  absl::StatusOr<v1::ServerInfo> FetchServerInfo();
  absl::Status WhyNotReady();
  // OK: the tokenizer is its model's.
  absl::Status CheckTokenizer(const v1::ModelInfo& info) const;
  void Set(const absl::StatusOr<ServedModel>& model);

  // For the time of a call, so that Stop can end it. False: it is to
  // end already.
  bool SetActive(grpc::ClientContext* context);
  bool IsStopping() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_;
  }

  WorkerClient* const client_;
  const TokenizerIdentity tokenizer_;
  std::function<void()> on_change_;

  mutable absl::Mutex mutex_;
  absl::StatusOr<ServedModel> model_ ABSL_GUARDED_BY(mutex_);
  grpc::ClientContext* active_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // "worker-monitor"; joined by Stop
};

}  // namespace lockstep
