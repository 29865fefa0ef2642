#pragma once

#include <absl/status/status.h>
#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/status.h>

namespace lockstep {

// The one table between Status and gRPC. Codes are the same numbers on both
// sides and messages are carried as they are; payloads that are messages, by
// the name of their type, become the google.rpc.Status in the trailer
// grpc-status-details-bin. An error without a reason is given its code's: see
// common/error_reason.h.
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

// A streaming call that ends with `status` before it begins. Owns itself.
template <typename Message>
class RefusedStream final : public grpc::ServerWriteReactor<Message> {
 public:
  explicit RefusedStream(const absl::Status& status) {
    this->Finish(ToGrpc(status));
  }

 private:
  void OnDone() override { delete this; }
};

}  // namespace lockstep
