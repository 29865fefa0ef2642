#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>

#include "frontend/access/key_account.h"
#include "frontend/generation/pipeline.h"
#include "frontend/http/message.h"
#include "frontend/http/response_writer.h"
#include "frontend/openai/request.h"

namespace lockstep::openai {

using ParseEmbeddings =
    std::function<absl::StatusOr<EmbeddingsRequest>(const http::Request&)>;

// One request for embeddings: an EmbedBatch, and one JSON object of what comes
// of it. A client that hangs up ends it at once. Keeps itself alive.
//
// `pipeline` must outlive the call. `grant` is released before the end is told;
// null: none is needed.
void StartEmbeddingsCall(Pipeline* pipeline, http::Request request,
                         std::shared_ptr<AccessGrant> grant,
                         ParseEmbeddings parse,
                         std::shared_ptr<http::ResponseWriter> writer);

}  // namespace lockstep::openai
