#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>

#include "frontend/generation/generation.h"
#include "frontend/generation/pipeline.h"
#include "frontend/generation/spec.h"
#include "frontend/grpc/unary_call.h"

namespace lockstep {

// One client's Embed call, begun: an EmbedBatch, and a message of what comes of
// it. A client that hangs up ends it at once. See UnaryCall.
//
// `pipeline` must outlive the call, `response` is gRPC's. See EmbedBatch for
// `parse` and `caller`.
grpc::ServerUnaryReactor* StartEmbedCall(Pipeline* pipeline,
                                         UnaryContext context,
                                         size_t request_bytes,
                                         Parser<EmbedSpec> parse, Caller caller,
                                         grpc::ByteBuffer* response);

}  // namespace lockstep
