#include "common/tracing/trace_context.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <random>

namespace lockstep {
namespace {

// Section 3.2: version-traceid-parentid-flags.
constexpr size_t kVersion = 0, kTraceId = 3, kParentId = 36, kFlags = 53;
constexpr size_t kTraceIdDigits = 32, kParentIdDigits = 16;
constexpr size_t kBytes = 55;  // of version 00
constexpr int kSampled = 1;    // of the flags

// Section 3.3.
constexpr size_t kMaxStateBytes = 512;
constexpr size_t kMaxMembers = 32;

bool IsHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
  });
}

bool IsId(absl::string_view text) {
  return IsHex(text) && text.find_first_not_of('0') != text.npos;
}

std::string RandomId(size_t digits) {
  std::random_device random;
  std::string id;
  while (id.size() < digits) {
    // Never all zeros, which is no id.
    absl::StrAppend(&id, absl::Hex(random() | 1, absl::kZeroPad8));
  }
  return id;
}

// Of later versions what they have in common with 00, which is the beginning.
std::optional<TraceContext> ParseTraceparent(absl::string_view text) {
  if (text.size() < kBytes || text[kTraceId - 1] != '-' ||
      text[kParentId - 1] != '-' || text[kFlags - 1] != '-') {
    return std::nullopt;
  }
  const absl::string_view version = text.substr(kVersion, 2);
  if (!IsHex(version) || version == "ff") return std::nullopt;
  if (text.size() > kBytes && (version == "00" || text[kBytes] != '-')) {
    return std::nullopt;
  }
  const absl::string_view trace_id = text.substr(kTraceId, kTraceIdDigits);
  const absl::string_view flags = text.substr(kFlags, 2);
  if (!IsId(trace_id) || !IsId(text.substr(kParentId, kParentIdDigits)) ||
      !IsHex(flags)) {
    return std::nullopt;
  }
  TraceContext trace;
  trace.trace_id = std::string(trace_id);
  // The lowest bit of an odd digit.
  const int digit = flags[1] <= '9' ? flags[1] - '0' : flags[1] - 'a' + 10;
  trace.is_sampled = (digit & kSampled) != 0;
  return trace;
}

bool IsMember(absl::string_view member) {
  const size_t equals = member.find('=');
  if (equals == 0 || equals == member.npos) return false;
  const absl::string_view key = member.substr(0, equals);
  const absl::string_view value = member.substr(equals + 1);
  return !value.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) ||
           absl::string_view("_-*/@").find(c) != absl::string_view::npos;
  }) && std::all_of(value.begin(), value.end(), [](char c) {
    return absl::ascii_isprint(c) && c != '=';
  });
}

// Its members without the spaces between them; empty if one is malformed or
// there are too many.
std::string ParseState(absl::string_view text) {
  std::vector<absl::string_view> members;
  for (absl::string_view member : absl::StrSplit(text, ',')) {
    member = absl::StripAsciiWhitespace(member);
    if (member.empty()) continue;  // allowed, as lists of headers have them
    if (!IsMember(member)) return "";
    members.push_back(member);
  }
  std::string state = absl::StrJoin(members, ",");
  const bool fits =
      state.size() <= kMaxStateBytes && members.size() <= kMaxMembers;
  return fits ? state : "";
}

}  // namespace

TraceContext ContinueTrace(absl::string_view traceparent,
                           absl::string_view tracestate) {
  TraceContext trace;
  if (auto parsed = ParseTraceparent(traceparent)) {
    trace = *std::move(parsed);
    trace.state = ParseState(tracestate);
  } else {
    trace.trace_id = RandomId(kTraceIdDigits);
  }
  trace.span_id = RandomId(kParentIdDigits);
  return trace;
}

std::vector<std::pair<std::string, std::string>> TraceHeaders(
    const TraceContext& trace) {
  std::vector<std::pair<std::string, std::string>> headers = {
      {"traceparent", absl::StrCat("00-", trace.trace_id, "-", trace.span_id,
                                   trace.is_sampled ? "-01" : "-00")}};
  if (!trace.state.empty()) headers.emplace_back("tracestate", trace.state);
  return headers;
}

}  // namespace lockstep
