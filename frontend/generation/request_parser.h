#pragma once

#include <absl/status/statusor.h>

#include <cstddef>

#include "frontend/generation/spec.h"
#include "proto/inference.pb.h"

namespace lockstep {

// Limits of the gateway's own; those of sampling are the worker's.
inline constexpr size_t kMaxPromptBytes = 8 << 20;
inline constexpr int kMaxChatMessages = 16'384;
// Of a whole request, and so of what is parsed.
inline constexpr int kMaxRequestBytes = 16 << 20;
// No text has longer tokens on average, so a longer text can not fit the
// context and need not be encoded to know it.
inline constexpr size_t kMaxBytesPerToken = 128;
inline constexpr size_t kMaxStopStrings = 16;
inline constexpr size_t kMaxStopStringBytes = 1024;
inline constexpr size_t kMaxRequestIdBytes = 128;

// The request as the pipeline wants it, or INVALID_ARGUMENT naming field, value
// and limit; NOT_FOUND names the models there are. A field this build does not
// know is refused. Takes as long as the request is long. Pure but for the ids
// it makes (worker_request_id, and request_id where the client has none); any
// thread.
absl::StatusOr<GenerateSpec> ParseGenerateRequest(
    const v1::GenerateRequest& request, const ServedModel& model);

absl::StatusOr<PromptSpec> ParseTokenizeRequest(
    const v1::TokenizeRequest& request, const ServedModel& model);

absl::StatusOr<DetokenizeSpec> ParseDetokenizeRequest(
    const v1::DetokenizeRequest& request, const ServedModel& model);

}  // namespace lockstep
