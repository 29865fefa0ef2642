#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "common/tracing/trace_context.h"

namespace lockstep {

inline constexpr char kRequestIdMetadata[] = "x-request-id";

// What a call's metadata say of where it came from. Of a context that is being
// served; any thread.

// The values of all metadata of a name, as one list; empty where there are
// none.
std::string MetadataOf(const grpc::ServerContextBase& context,
                       const std::string& name);

// Goes on with the caller's trace.
TraceContext TraceOf(const grpc::ServerContextBase& context);

// x-request-id, where it is there and fit for a log; else empty.
std::string RequestIdOf(const grpc::ServerContextBase& context);

}  // namespace lockstep
