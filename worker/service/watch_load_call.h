#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>

#include <functional>

#include "proto/worker.pb.h"

namespace lockstep {

// The least time between two messages. INVALID_ARGUMENT names the field and its
// limits.
absl::StatusOr<absl::Duration> WatchInterval(
    const v1::WatchLoadRequest& request);

// One WatchLoad call: sends the load at once, then looks every `interval` and
// sends it where it has changed, or a second has gone by. Owns itself. What
// `load` uses must outlive it.
grpc::ServerWriteReactor<v1::Load>* StartWatchLoadCall(
    absl::Duration interval, std::function<v1::Load()> load);

// A call that ends with `status` at once.
grpc::ServerWriteReactor<v1::Load>* RefuseWatchLoadCall(
    const absl::Status& status);

}  // namespace lockstep
