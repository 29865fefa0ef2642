#pragma once

#include <absl/status/status.h>
#include <grpcpp/grpcpp.h>

#include "common/grpc_status.h"

namespace lockstep {

// A streaming call that ends with `status` at once. Owns itself.
template <typename Message>
class RefusedCall final : public grpc::ServerWriteReactor<Message> {
 public:
  explicit RefusedCall(const absl::Status& status) {
    this->Finish(ToGrpc(status));
  }
  void OnDone() override { delete this; }
};

}  // namespace lockstep
