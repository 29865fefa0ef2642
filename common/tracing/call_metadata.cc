#include "common/tracing/call_metadata.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include "common/request_id.h"

namespace lockstep {

std::string MetadataOf(const grpc::ServerContextBase& context,
                       const std::string& name) {
  std::string values;
  const auto [begin, end] = context.client_metadata().equal_range(name);
  for (auto at = begin; at != end; ++at) {
    absl::StrAppend(&values, values.empty() ? "" : ",",
                    absl::string_view(at->second.data(), at->second.size()));
  }
  return values;
}

TraceContext TraceOf(const grpc::ServerContextBase& context) {
  return ContinueTrace(MetadataOf(context, "traceparent"),
                       MetadataOf(context, "tracestate"));
}

std::string RequestIdOf(const grpc::ServerContextBase& context) {
  std::string id = MetadataOf(context, kRequestIdMetadata);
  return CheckRequestId(kRequestIdMetadata, id).ok() ? id : "";
}

}  // namespace lockstep
