#include "tests/testing/http/parsed_request.h"

#include <utility>

namespace lockstep::openai {

using nlohmann::json;

json LeastRequest(Endpoint endpoint) {
  const json messages = json::array({{{"role", "user"}, {"content", "hi"}}});
  switch (endpoint) {
    case kChat:
      return {{"messages", messages}};
    case kDetokenize:
      return {{"tokens", {1}}};
    case kEmbeddings:
      return {{"input", "hi"}};
    default:
      return {{"prompt", "hi"}};
  }
}

ParsedForTest ParseForTest(Endpoint endpoint, const std::string& body,
                           uint32_t max_context) {
  UnknownFields unknown;
  RequestContext context = {{"tiny", max_context, 300, "0123456789abcdef0123"},
                            "req-1",
                            /*has_request_id=*/false,
                            /*now_s=*/0,
                            &unknown};
  context.model.embedding.emplace();
  ParsedForTest parsed;
  if (endpoint == kEmbeddings) {
    auto result = ParseEmbeddingsRequest(body, context);
    parsed.status = result.status();
    if (result.ok()) parsed.embeddings = *std::move(result);
    parsed.spec = parsed.embeddings.spec.each;
  } else if (endpoint == kTokenize) {
    auto result = ParseTokenizeRequest(body, context);
    parsed.status = result.status();
    if (result.ok()) parsed.tokenize = *std::move(result);
  } else if (endpoint == kDetokenize) {
    auto result = ParseDetokenizeRequest(body, context);
    parsed.status = result.status();
    if (result.ok()) parsed.detokenize = *std::move(result);
  } else {
    auto result = endpoint == kChat ? ParseChatRequest(body, context)
                                    : ParseCompletionRequest(body, context);
    parsed.status = result.status();
    if (result.ok()) {
      parsed.spec = std::move(result->specs[0]);
      parsed.style = std::move(result->style);
    }
  }
  for (const auto& [name, count] : unknown.counts()) parsed.unknown += count;
  return parsed;
}

}  // namespace lockstep::openai
