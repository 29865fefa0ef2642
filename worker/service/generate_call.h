#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "proto/worker.pb.h"
#include "worker/service/admission.h"
#include "worker/service/output_stream.h"

namespace lockstep {

// One Generate call: sends what its stream holds, one write at a time. A client
// that hangs up, or whose deadline passes, aborts the request. Owns itself from
// its start to OnDone.
//
// `admission` must outlive it, which it does as it outlives the server.
grpc::ServerWriteReactor<v1::WorkerGenerateResponse>* StartGenerateCall(
    grpc::CallbackServerContext* context, std::shared_ptr<OutputStream> stream,
    Admission* admission);

// A call that ends with `status` at once.
grpc::ServerWriteReactor<v1::WorkerGenerateResponse>* RefuseGenerateCall(
    const absl::Status& status);

}  // namespace lockstep
