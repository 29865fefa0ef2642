#include "frontend/openai/embeddings_call.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <string>
#include <utility>

#include "frontend/generation/embed_batch.h"
#include "frontend/openai/answer_json.h"
#include "frontend/openai/error_response.h"

namespace lockstep::openai {
namespace {

// As text from the start: values are many, and as JSON's own each takes more.
std::string BodyOf(const EmbeddingsStyle& style, const EmbedResult& result) {
  std::string body = absl::StrCat(
      "{\"id\":", Dump(style.id),
      ",\"object\":\"list\",\"created\":", style.created_s, ",\"data\":[");
  for (size_t i = 0; i < result.embeddings.size(); ++i) {
    absl::StrAppend(&body, i == 0 ? "" : ",",
                    R"({"object":"embedding","index":)", i, ",\"embedding\":");
    AppendEmbedding(result.embeddings[i], style.as_base64, &body);
    body += '}';
  }
  const Json usage = {{"prompt_tokens", result.usage.prompt_tokens()},
                      {"total_tokens", result.usage.prompt_tokens()},
                      {"prompt_tokens_details",
                       {{"cached_tokens", result.usage.cached_tokens()}}}};
  absl::StrAppend(&body, "],\"model\":", Dump(style.model),
                  ",\"usage\":", Dump(usage), "}");
  return body;
}

http::Response ResponseOf(const EmbeddingsStyle& style,
                          const EmbedResult& result) {
  http::Fields fields = {{"content-type", "application/json"}};
  if (result.failovers > 0) {
    fields.emplace_back("x-lockstep-failovers", absl::StrCat(result.failovers));
  }
  return {200, std::move(fields), BodyOf(style, result)};
}

}  // namespace

void StartEmbeddingsCall(Pipeline* pipeline, http::Request request,
                         std::shared_ptr<AccessGrant> grant,
                         ParseEmbeddings parse,
                         std::shared_ptr<http::ResponseWriter> writer) {
  struct Call {
    http::Request request;  // until it is parsed
    EmbeddingsStyle style;
  };
  const auto call = std::make_shared<Call>();
  call->request = std::move(request);
  const auto parse_once = [call, parse, writer]() -> absl::StatusOr<EmbedSpec> {
    auto parsed = parse(call->request);
    call->request.body = std::string();
    if (!parsed.ok()) return parsed.status();
    call->style = std::move(parsed->style);
    if (!writer->Hold(parsed->most_bytes)) {
      return absl::ResourceExhaustedError(
          "the gateway holds too many large answers already; try again later, "
          "or with fewer inputs.");
    }
    return std::move(parsed->spec);
  };
  const auto answer = [call, writer](absl::StatusOr<EmbedResult> result) {
    writer->Send(result.ok() ? ResponseOf(call->style, *result)
                             : ErrorResponse(result.status()));
  };
  const auto batch = std::make_shared<EmbedBatch>(
      pipeline, call->request.body.size(), parse_once,
      Caller{.grant = std::move(grant), .record = call->request.access},
      answer);
  writer->OnGone([batch = std::weak_ptr<EmbedBatch>(batch)] {
    if (const auto live = batch.lock()) {
      live->Cancel(absl::CancelledError("the client closed the connection."));
    }
  });
  batch->Start();
}

}  // namespace lockstep::openai
