#pragma once

#include <absl/status/status.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/worker.grpc.pb.h"

namespace lockstep {

// (name, value), names in lower case.
using CallMetadata = std::vector<std::pair<std::string, std::string>>;

// One Generate call at a worker. Messages are read one at a time, each when it
// is asked for: a reader that stops asking fills the worker's buffer of this
// stream, and only that.
//
//   WorkerCall call(stub, address, request, metadata, deadline, this);
//   call.Start();                       // then OnMessage or OnEnd
//   void OnMessage(message) { …; call_->Next(); }
//
// Start is called once. Cancel can be called at any time, from any thread. The
// object must live until OnEnd is called, and may be destroyed in it.
class WorkerCall : private grpc::ClientReadReactor<v1::WorkerGenerateResponse> {
 public:
  // Called on gRPC's threads, one call at a time.
  class Listener {
   public:
    virtual ~Listener() = default;

    // `message` is valid until Next, which asks for another.
    virtual void OnMessage(const v1::WorkerGenerateResponse& message) = 0;
    // Exactly once, last. What the worker refused has its own words;
    // UNAVAILABLE names the worker's address.
    virtual void OnEnd(absl::Status status) = 0;
  };

  WorkerCall(std::shared_ptr<v1::Worker::Stub> stub, const std::string& address,
             v1::WorkerGenerateRequest request, const CallMetadata& metadata,
             std::chrono::system_clock::time_point deadline,
             Listener* listener);

  void Start();
  void Next();
  void Cancel() { context_.TryCancel(); }

 private:
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  const std::shared_ptr<v1::Worker::Stub> stub_;
  const std::string address_;
  const v1::WorkerGenerateRequest request_;
  Listener* const listener_;
  grpc::ClientContext context_;
  v1::WorkerGenerateResponse message_;
};

// What a client is told when a call to the worker at `address` ended so. The
// worker's reason stays.
absl::Status DescribeWorkerStatus(const grpc::Status& status,
                                  const std::string& address);

}  // namespace lockstep
