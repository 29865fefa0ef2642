#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>

#include "frontend/generation/generation.h"
#include "frontend/generation/pipeline.h"
#include "frontend/generation/spec.h"

namespace lockstep {

// One client's Embed call, begun: an EmbedBatch, and a message of what comes of
// it. A client that hangs up ends it at once. The reactor deletes itself once
// gRPC is done with it.
//
// `pipeline` must outlive the call, `response` is gRPC's. See EmbedBatch for
// `parse` and `caller`, whose record is told how the call ends.
grpc::ServerUnaryReactor* StartEmbedCall(Pipeline* pipeline,
                                         grpc::CallbackServerContext* context,
                                         size_t request_bytes,
                                         Parser<EmbedSpec> parse, Caller caller,
                                         grpc::ByteBuffer* response);

}  // namespace lockstep
