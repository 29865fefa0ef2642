// Whatever a client sends as traceparent and tracestate, what is passed on is
// well-formed, and goes on with the trace when it comes back.

#include <absl/strings/string_view.h>
#include <glog/logging.h>

#include <cstddef>
#include <cstdint>

#include "common/tracing/trace_context.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = text.find('\n');
  const absl::string_view state =
      end == text.npos ? absl::string_view() : text.substr(end + 1);
  const lockstep::TraceContext trace =
      lockstep::ContinueTrace(text.substr(0, end), state);
  const auto headers = lockstep::TraceHeaders(trace);
  const lockstep::TraceContext next =
      lockstep::ContinueTrace(headers[0].second, trace.state);
  CHECK_EQ(next.trace_id, trace.trace_id);
  CHECK_EQ(next.is_sampled, trace.is_sampled);
  CHECK_EQ(next.state, trace.state);
  return 0;
}
