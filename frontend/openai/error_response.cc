#include "frontend/openai/error_response.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

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
  absl::ConsumePrefix(&message, "sampling.");
  return message;
}

// The field that is told, or the one an error's sentence begins with.
std::string ParamOf(const absl::Status& status) {
  std::string field = FieldOf(status);
  if (!field.empty() || !absl::IsInvalidArgument(status)) return field;
  const absl::string_view message = MessageOf(status);
  const absl::string_view name =
      message.substr(0, message.find_first_of(" .[:"));
  return FindField(name, ~0u) == nullptr ? "" : std::string(name);
}

std::string Write(absl::string_view message, absl::string_view type,
                  absl::string_view param, absl::string_view reason) {
  const auto or_null = [](absl::string_view text) {
    return text.empty() ? Json() : Json(std::string(text));
  };
  const Json json = {{"error",
                      {{"message", std::string(message)},
                       {"type", std::string(type)},
                       {"param", or_null(param)},
                       {"code", or_null(reason)}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// When to try again: what is known of it, or the row's word.
int RetryAfterSeconds(const absl::Status& status, const ErrorRow& row) {
  const auto delay = RetryDelayOf(status);
  if (!delay.has_value()) return row.retry_after_s;
  return static_cast<int>(
      absl::ToInt64Seconds(absl::Ceil(*delay, absl::Seconds(1))));
}

http::Response MakeResponse(int status, int retry_after_s, bool may_retry,
                            std::string body) {
  http::Response response;
  response.status = status;
  response.fields = {{"content-type", "application/json"}};
  if (status == 401) {
    response.fields.emplace_back("www-authenticate", "Bearer");
  }
  if (retry_after_s > 0) {
    response.fields.emplace_back("retry-after", absl::StrCat(retry_after_s));
  }
  // OpenAI's clients try again what ends 409 or 5xx unless they are told.
  if ((status == 409 || status >= 500) && !may_retry) {
    response.fields.emplace_back("x-should-retry", "false");
  }
  response.body = std::move(body);
  return response;
}

}  // namespace

absl::Span<const ErrorRow> ErrorTable() { return kRows; }

std::string ErrorJson(const absl::Status& status) {
  const ErrorRow& row = RowOf(status.code());
  const std::string reason = ReasonOf(status);
  return Write(MessageOf(status), row.type, ParamOf(status),
               reason.empty() ? row.reason : reason);
}

http::Response ErrorResponse(const absl::Status& status) {
  const ErrorRow& row = RowOf(status.code());
  return MakeResponse(row.http_status, RetryAfterSeconds(status, row),
                      row.may_retry, ErrorJson(status));
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
  return MakeResponse(refusal.status, is_full ? 1 : 0, is_full,
                      Write(refusal.message, type, "", ""));
}

}  // namespace lockstep::openai
