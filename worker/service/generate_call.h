#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>

#include "worker/service/admission.h"
#include "worker/service/output_stream.h"

namespace lockstep {

using OnSubmitted =
    std::function<void(absl::StatusOr<std::shared_ptr<OutputStream>>)>;

// One Generate call: has its request submitted, by a function that says at some
// time, once, what came of it; then sends what its stream holds, one write at a
// time. A client that hangs up aborts the request; its deadline is admission's.
// Owns itself from its start to OnDone, when it leaves `admission`.
//
// `admission` must outlive it, which it does as it outlives the server.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartGenerateCall(
    grpc::CallbackServerContext* context, Admission* admission,
    const std::function<void(OnSubmitted)>& submit);

// The call's deadline on the clock of `admission`.
Admission::Clock::time_point DeadlineOf(
    const grpc::CallbackServerContext& context);

}  // namespace lockstep
