#pragma once

#include <absl/status/statusor.h>

#include "frontend/generation/spec.h"
#include "proto/inference.pb.h"

namespace lockstep {

// Of a whole request, and so of what is parsed.
inline constexpr int kMaxRequestBytes = 16 << 20;

// The request as the pipeline wants it and checked (spec_check.h). A field this
// build does not know is refused. Takes as long as the request is long. Pure
// but for the ids it makes (worker_request_id, and request_id where the client
// has none); any thread.
absl::StatusOr<GenerateSpec> ParseGenerateRequest(
    const v1::GenerateRequest& request, const ServedModel& model);

absl::StatusOr<PromptSpec> ParseTokenizeRequest(
    const v1::TokenizeRequest& request, const ServedModel& model);

absl::StatusOr<EmbedSpec> ParseEmbedRequest(const v1::EmbedRequest& request,
                                            const ServedModel& model);
absl::StatusOr<DetokenizeSpec> ParseDetokenizeRequest(
    const v1::DetokenizeRequest& request, const ServedModel& model);

}  // namespace lockstep
