// Bodies as clients could send them: whatever the bytes are, they become
// requests within the limits, or an error that has a row in the table and is
// JSON itself.

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "frontend/generation/spec_check.h"
#include "frontend/openai/error_response.h"
#include "frontend/openai/request.h"

namespace {

using lockstep::GenerateSpec;
using lockstep::openai::RequestContext;
using lockstep::openai::UnknownFields;

void Require(bool holds) {
  if (!holds) std::abort();
}

void RequireError(const absl::Status& status) {
  if (status.ok()) return;
  Require(absl::IsInvalidArgument(status) || absl::IsNotFound(status));
  const auto json = nlohmann::json::parse(lockstep::openai::ErrorJson(status),
                                          nullptr, false);
  Require(json.is_object() && json["error"]["message"].is_string());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace openai = lockstep::openai;
  static UnknownFields* const unknown = new UnknownFields;
  RequestContext context = {
      {"tiny", /*max_context_tokens=*/64, /*vocabulary_size=*/300},
      "req-1",
      /*has_request_id=*/false,
      /*now_s=*/0,
      unknown};
  context.model.embedding.emplace();
  const absl::string_view body(reinterpret_cast<const char*>(data), size);
  for (const auto parse :
       {openai::ParseChatRequest, openai::ParseCompletionRequest}) {
    const auto parsed = parse(body, context);
    RequireError(parsed.status());
    if (!parsed.ok()) continue;
    Require(!parsed->specs.empty());
    for (const GenerateSpec& spec : parsed->specs) {
      Require(!spec.prompt.field.empty() && !spec.worker_request_id.empty());
      Require(spec.priority >= -100 && spec.priority <= 100);
      Require(spec.stop.size() <= 16);
    }
  }
  const auto embeddings = openai::ParseEmbeddingsRequest(body, context);
  RequireError(embeddings.status());
  if (embeddings.ok()) {
    const auto& inputs = embeddings->spec.inputs;
    Require(!inputs.empty() && inputs.size() <= lockstep::kMaxEmbedInputs);
    const auto& truncation = embeddings->spec.each.truncation;
    Require(!truncation.has_value() || (*truncation >= 1 && *truncation <= 64));
  }
  RequireError(openai::ParseTokenizeRequest(body, context).status());
  RequireError(openai::ParseDetokenizeRequest(body, context).status());
  return 0;
}
