#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "worker/service/admission.h"
#include "worker/service/output_stream.h"

namespace lockstep {

// One Generate call: sends what its stream holds, one write at a time. A client
// that hangs up aborts the request; its deadline is admission's. Owns itself
// from its start to OnDone, when it leaves `admission`.
//
// `admission` must outlive it, which it does as it outlives the server.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartGenerateCall(
    grpc::CallbackServerContext* context, std::shared_ptr<OutputStream> stream,
    Admission* admission);

// The call's deadline on the clock of `admission`.
Admission::Clock::time_point DeadlineOf(
    const grpc::CallbackServerContext& context);

// A call that ends with `status` at once.
grpc::ServerWriteReactor<grpc::ByteBuffer>* RefuseGenerateCall(
    const absl::Status& status);

}  // namespace lockstep
