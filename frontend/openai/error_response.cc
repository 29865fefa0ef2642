#include "frontend/openai/error_response.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <absl/time/time.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/error_reason.h"
#include "frontend/generation/error_detail.h"
#include "frontend/openai/fields.h"

namespace lockstep::openai {
namespace {

using Json = nlohmann::ordered_json;
using absl::StatusCode;

constexpr char kInvalid[] = "invalid_request_error";
constexpr char kServer[] = "server_error";

constexpr ErrorRow kRows[] = {
    {StatusCode::kInvalidArgument, 400, kInvalid, "invalid_value", 0, false},
    {StatusCode::kFailedPrecondition, 400, kInvalid, "invalid_value", 0, false},
    {StatusCode::kOutOfRange, 400, kInvalid, "invalid_value", 0, false},
    {StatusCode::kUnauthenticated, 401, "authentication_error",
     "invalid_api_key", 0, false},
    {StatusCode::kPermissionDenied, 403, "permission_error",
     "permission_denied", 0, false},
    {StatusCode::kNotFound, 404, "not_found_error", "not_found", 0, false},
    {StatusCode::kAlreadyExists, 409, kInvalid, "already_exists", 0, false},
    {StatusCode::kAborted, 409, kServer, "aborted", 0, true},
    {StatusCode::kResourceExhausted, 429, "rate_limit_error",
     "rate_limit_exceeded", 1, true},
    // Nobody is there to read it.
    {StatusCode::kCancelled, 499, kServer, "cancelled", 0, false},
    {StatusCode::kUnknown, 500, kServer, "internal_error", 0, false},
    {StatusCode::kInternal, 500, kServer, "internal_error", 0, false},
    {StatusCode::kDataLoss, 500, kServer, "internal_error", 0, false},
    {StatusCode::kUnimplemented, 501, kServer, "not_implemented", 0, false},
    {StatusCode::kUnavailable, 503, "service_unavailable_error",
     "server_is_overloaded", 1, true},
    {StatusCode::kDeadlineExceeded, 504, "timeout_error", "timeout", 0, false},
};

const ErrorRow& RowOf(StatusCode code) {
  const ErrorRow* internal = nullptr;
  for (const ErrorRow& row : kRows) {
    if (row.code == code) return row;
    if (row.code == StatusCode::kInternal) internal = &row;
  }
  return *internal;
}

// Fields of the worker's messages are OpenAI's but for the prefix.
absl::string_view MessageOf(const absl::Status& status) {
  absl::string_view message = status.message();
  if (!absl::ConsumePrefix(&message, "sampling.")) {
    absl::ConsumePrefix(&message, "embedding.");
  }
  return message;
}

// The field that is told, or the one an error's sentence begins with.
std::string ParamOf(const absl::Status& status) {
  std::string field = FieldOf(status);
  if (!field.empty() || !absl::IsInvalidArgument(status)) return field;
  const absl::string_view message = MessageOf(status);
  const absl::string_view path = message.substr(0, message.find_first_of(" :"));
  const absl::string_view name = path.substr(0, path.find_first_of(".["));
  return FindField(name, ~0u) == nullptr ? "" : std::string(path);
}

struct ErrorObject {
  absl::string_view message;
  absl::string_view type;
  // Null where they are empty:
  std::string param = {};
  std::string code = {};
  std::string reason = {};
};

std::string Write(const ErrorObject& error) {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? Json() : Json(text);
  };
  const Json json = {{"error",
                      {{"message", std::string(error.message)},
                       {"type", std::string(error.type)},
                       {"param", or_null(error.param)},
                       {"code", or_null(error.code)},
                       {"reason", or_null(error.reason)}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Whether the reason says so; without one, the row.
bool MayRetry(const ErrorRow& row, const absl::Status& status) {
  const std::map<std::string, std::string> metadata = ErrorMetadataOf(status);
  const auto retryable = metadata.find("retryable");
  return retryable == metadata.end() ? row.may_retry
                                     : retryable->second == "true";
}

absl::Duration RetryAfter(const ErrorRow& row, const absl::Status& status) {
  if (row.retry_after_s == 0 || !MayRetry(row, status)) {
    return absl::ZeroDuration();
  }
  return RetryDelayOf(status).value_or(absl::Seconds(row.retry_after_s));
}

http::Response MakeResponse(int status, absl::Duration retry_after,
                            bool may_retry, std::string body) {
  http::Response response;
  response.status = status;
  response.fields = {{"content-type", "application/json"}};
  if (status == 401) {
    response.fields.emplace_back("www-authenticate", "Bearer");
  }
  if (retry_after > absl::ZeroDuration()) {
    const absl::Duration whole = absl::Ceil(retry_after, absl::Seconds(1));
    response.fields.emplace_back("retry-after",
                                 absl::StrCat(absl::ToInt64Seconds(whole)));
    // Which OpenAI's clients prefer.
    response.fields.emplace_back(
        "retry-after-ms", absl::StrCat(absl::ToInt64Milliseconds(retry_after)));
  }
  // OpenAI's clients try these again unless they are told.
  if ((status == 409 || status == 429 || status >= 500) && !may_retry) {
    response.fields.emplace_back("x-should-retry", "false");
  }
  response.body = std::move(body);
  return response;
}

}  // namespace

absl::Span<const ErrorRow> ErrorTable() { return kRows; }

std::string ErrorJson(const absl::Status& status) {
  const ErrorRow& row = RowOf(status.code());
  const std::string code = ReasonOf(status);
  return Write({.message = MessageOf(status),
                .type = row.type,
                .param = ParamOf(status),
                .code = code.empty() ? row.code_word : code,
                .reason = ErrorReasonOf(WithDefaultReason(status))});
}

http::Response ErrorResponse(const absl::Status& status) {
  const ErrorRow& row = RowOf(status.code());
  const absl::Status told = WithDefaultReason(status);
  return MakeResponse(row.http_status, RetryAfter(row, told),
                      MayRetry(row, told), ErrorJson(status));
}

http::Response RefusalResponse(const http::Refusal& refusal) {
  if (refusal.status == 401) {
    return ErrorResponse(absl::UnauthenticatedError(refusal.message));
  }
  const bool is_full = refusal.status == 503;
  const char* type = refusal.status == 404   ? "not_found_error"
                     : is_full               ? "service_unavailable_error"
                     : refusal.status >= 500 ? kServer
                                             : kInvalid;
  return MakeResponse(
      refusal.status, is_full ? absl::Seconds(1) : absl::ZeroDuration(),
      is_full, Write({.message = refusal.message, .type = type}));
}

}  // namespace lockstep::openai
