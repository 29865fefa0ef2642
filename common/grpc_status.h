#pragma once

#include <absl/status/status.h>
#include <grpcpp/support/status.h>

namespace lockstep {

// The one table between Status and gRPC. Codes are the same numbers on both
// sides; messages are carried as they are.
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace lockstep
