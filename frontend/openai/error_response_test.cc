#include "frontend/openai/error_response.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "common/error_reason.h"
#include "common/grpc_status.h"
#include "frontend/generation/error_detail.h"

namespace lockstep::openai {
namespace {

using absl::StatusCode;
using nlohmann::json;

std::string FieldIn(const http::Response& response, const std::string& name) {
  for (const auto& [key, value] : response.fields) {
    if (key == name) return value;
  }
  return "";
}

TEST(ErrorResponse, EveryCodeIsOneRow) {
  const struct {
    StatusCode code;
    grpc::StatusCode grpc;
    int status;
    const char* type;
    const char* code_word;
    const char* retry_after;
    const char* should_retry;
  } kCases[] = {
      {StatusCode::kCancelled, grpc::CANCELLED, 499, "server_error",
       "cancelled", "", ""},
      {StatusCode::kUnknown, grpc::UNKNOWN, 500, "server_error",
       "internal_error", "", "false"},
      {StatusCode::kInvalidArgument, grpc::INVALID_ARGUMENT, 400,
       "invalid_request_error", "invalid_value", "", ""},
      {StatusCode::kDeadlineExceeded, grpc::DEADLINE_EXCEEDED, 504,
       "timeout_error", "timeout", "", "false"},
      {StatusCode::kNotFound, grpc::NOT_FOUND, 404, "not_found_error",
       "not_found", "", ""},
      {StatusCode::kAlreadyExists, grpc::ALREADY_EXISTS, 409,
       "invalid_request_error", "already_exists", "", "false"},
      {StatusCode::kPermissionDenied, grpc::PERMISSION_DENIED, 403,
       "permission_error", "permission_denied", "", ""},
      {StatusCode::kResourceExhausted, grpc::RESOURCE_EXHAUSTED, 429,
       "rate_limit_error", "rate_limit_exceeded", "1", ""},
      {StatusCode::kFailedPrecondition, grpc::FAILED_PRECONDITION, 400,
       "invalid_request_error", "invalid_value", "", ""},
      {StatusCode::kAborted, grpc::ABORTED, 409, "server_error", "aborted", "",
       ""},
      {StatusCode::kOutOfRange, grpc::OUT_OF_RANGE, 400,
       "invalid_request_error", "invalid_value", "", ""},
      {StatusCode::kUnimplemented, grpc::UNIMPLEMENTED, 501, "server_error",
       "not_implemented", "", "false"},
      {StatusCode::kInternal, grpc::INTERNAL, 500, "server_error",
       "internal_error", "", "false"},
      {StatusCode::kUnavailable, grpc::UNAVAILABLE, 503,
       "service_unavailable_error", "server_is_overloaded", "1", ""},
      {StatusCode::kDataLoss, grpc::DATA_LOSS, 500, "server_error",
       "internal_error", "", "false"},
      {StatusCode::kUnauthenticated, grpc::UNAUTHENTICATED, 401,
       "authentication_error", "invalid_api_key", "", ""},
  };
  EXPECT_EQ(ErrorTable().size(), std::size(kCases));
  for (const auto& c : kCases) {
    const absl::Status status(c.code, "why");
    EXPECT_EQ(ToGrpc(status).error_code(), c.grpc);
    const http::Response response = ErrorResponse(status);
    EXPECT_EQ(response.status, c.status) << status;
    EXPECT_EQ(FieldIn(response, "retry-after"), c.retry_after) << status;
    EXPECT_EQ(FieldIn(response, "x-should-retry"), c.should_retry) << status;
    const std::string reason = ErrorReasonOf(WithDefaultReason(status));
    EXPECT_EQ(json::parse(response.body),
              json({{"error",
                     {{"message", "why"},
                      {"type", c.type},
                      {"param", nullptr},
                      {"code", c.code_word},
                      {"reason", reason.empty() ? json() : json(reason)}}}}));
  }
}

TEST(ErrorResponse, NamesTheFieldAsOpenAiDoes) {
  const struct {
    absl::Status status;
    json error;
  } kCases[] = {
      {WithField(
           WithReason(absl::InvalidArgumentError("no"), kUnsupportedParameter),
           "tools"),
       {{"message", "no"},
        {"type", "invalid_request_error"},
        {"param", "tools"},
        {"code", "unsupported_parameter"},
        {"reason", "INVALID_REQUEST"}}},
      // The worker's words.
      {absl::InvalidArgumentError(
           "sampling.top_p is 2, it must be above 0 and at most 1."),
       {{"message", "top_p is 2, it must be above 0 and at most 1."},
        {"type", "invalid_request_error"},
        {"param", "top_p"},
        {"code", "invalid_value"},
        {"reason", "INVALID_REQUEST"}}},
      {absl::InvalidArgumentError("messages[2].role is empty."),
       {{"message", "messages[2].role is empty."},
        {"type", "invalid_request_error"},
        {"param", "messages[2].role"},
        {"code", "invalid_value"},
        {"reason", "INVALID_REQUEST"}}},
      {absl::InvalidArgumentError("the body is wrong."),
       {{"message", "the body is wrong."},
        {"type", "invalid_request_error"},
        {"param", nullptr},
        {"code", "invalid_value"},
        {"reason", "INVALID_REQUEST"}}},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(json::parse(ErrorJson(c.status))["error"], c.error);
  }
}

TEST(ErrorResponse, WhatHttpRefusesLooksTheSame) {
  const http::Response response = RefusalResponse({404, "there is no /x."});
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(json::parse(response.body)["error"]["type"], "not_found_error");
  EXPECT_EQ(FieldIn(RefusalResponse({503, "full"}), "retry-after"), "1");
  EXPECT_EQ(FieldIn(RefusalResponse({501, "no"}), "x-should-retry"), "false");
  EXPECT_EQ(json::parse(RefusalResponse({431, "long"}).body)["error"]["type"],
            "invalid_request_error");
}

}  // namespace
}  // namespace lockstep::openai
