#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>

#include "common/security/grpc_credentials.h"

namespace lockstep {

// The stub that begins calls on a SecureChannel, made once for each of its
// channels: making one registers every method of the service.
//
//   SecureStub<v1::Worker::Stub> worker(address, ChannelArguments(), tls);
//   const auto stub = worker.Get();  // held during the call
//   stub->GetModelInfo(&context, request, &info);
//
// `Stub` is made of a channel: a service's stub, or a struct of several. Any
// thread.
template <typename Stub>
class SecureStub {
 public:
  SecureStub(const std::string& address,
             const grpc::ChannelArguments& arguments, ClientTls tls)
      : channel_(address, arguments, std::move(tls)) {}

  // The same until the certificates change.
  std::shared_ptr<Stub> Get() {
    std::shared_ptr<grpc::Channel> channel = channel_.Get();
    absl::MutexLock lock(&mutex_);
    if (channel != used_) {
      stub_ = std::make_shared<Stub>(channel);
      used_ = std::move(channel);
    }
    return stub_;
  }

 private:
  SecureChannel channel_;

  absl::Mutex mutex_;
  std::shared_ptr<grpc::Channel> used_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Stub> stub_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
