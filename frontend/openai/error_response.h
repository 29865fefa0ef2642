#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <string>

#include "frontend/http/message.h"
#include "frontend/http/request_reader.h"

namespace lockstep::openai {

// What an error is to a client of OpenAI's API. gRPC's code has the number of
// Status's (common/grpc_status.h), so a row is all three.
struct ErrorRow {
  absl::StatusCode code;
  int http_status;
  const char* type;
  const char* code_word;  // "code" of the error object, unless Status has one
  int retry_after_s;      // unless Status says it; 0: never
  bool may_retry;         // unless Status has a reason, which says it
};

// The one table: each StatusCode but OK.
absl::Span<const ErrorRow> ErrorTable();

// {"error": {"message", "type", "param", "code", "reason"}}; the last is ours,
// as docs/errors.md has them.
std::string ErrorJson(const absl::Status& status);

http::Response ErrorResponse(const absl::Status& status);

// Of what HTTP itself refuses.
http::Response RefusalResponse(const http::Refusal& refusal);

}  // namespace lockstep::openai
