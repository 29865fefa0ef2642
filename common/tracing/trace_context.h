#pragma once

#include <absl/strings/string_view.h>

#include <string>
#include <utility>
#include <vector>

namespace lockstep {

// A request's place in a trace that goes through several programs: W3C Trace
// Context, level 1 (the headers traceparent and tracestate).
//
//   const TraceContext trace = ContinueTrace(traceparent, tracestate);
//   for (const auto& [name, value] : TraceHeaders(trace)) …to the next…
//
// No spans are recorded: what is passed on joins the logs of all programs.
struct TraceContext {
  std::string trace_id = {};  // 32 hexadecimal digits, in lower case
  std::string span_id = {};   // 16 of them: of this program's part
  bool is_sampled = false;
  std::string state = {};  // of other vendors; passed on
};

// The next part of the caller's trace, or the first of a new one where the
// caller has none or its traceparent is malformed; then its state is dropped,
// as the standard says. A malformed state alone is dropped alone. Any thread.
TraceContext ContinueTrace(absl::string_view traceparent,
                           absl::string_view tracestate);

// (name, value), for HTTP or for gRPC's metadata.
std::vector<std::pair<std::string, std::string>> TraceHeaders(
    const TraceContext& trace);

}  // namespace lockstep
