#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "common/request_id.h"
#include "common/status_macros.h"
#include "frontend/generation/spec_check.h"
#include "frontend/openai/json_body.h"
#include "frontend/openai/prompts.h"
#include "frontend/openai/request.h"
#include "frontend/openai/sampling_fields.h"

namespace lockstep::openai {
namespace {

constexpr int64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();
constexpr char kInput[] = "input";
constexpr char kTruncation[] = "truncate_prompt_tokens";

v1::EmbeddingParams ReadParams(FieldReader* reader) {
  v1::EmbeddingParams params;
  if (const auto v = reader->Integer("dimensions", 1, kMaxUint32)) {
    params.set_dimensions(*v);
  }
  if (const auto v = reader->Bool("normalize")) params.set_normalize(*v);
  const auto pooling = reader->String("pooling");
  if (pooling == "last_token") {
    params.set_pooling(v1::LAST_TOKEN);
  } else if (pooling == "mean") {
    params.set_pooling(v1::MEAN);
  } else if (pooling.has_value()) {
    reader->Fail("pooling", "last_token or mean");
  }
  return params;
}

// -1 is all of the context.
Truncation ReadTruncation(FieldReader* reader, const ServedModel& model) {
  const auto tokens = reader->Integer(kTruncation, -1, kMaxUint32);
  if (!tokens.has_value()) return std::nullopt;
  return *tokens < 0 ? model.max_context_tokens : *tokens;
}

// As JSON; a value takes at most so many, and what is around all of them.
size_t MostBytes(const EmbeddingsRequest& request) {
  constexpr size_t kOfBase64 = 6, kOfText = 16, kAround = 64;
  const size_t each = request.style.as_base64 ? kOfBase64 : kOfText;
  return request.spec.inputs.size() *
         (NumValues(request.spec) * each + kAround);
}

bool ReadAsBase64(FieldReader* reader) {
  const std::string format =
      reader->String("encoding_format").value_or("float");
  if (format != "float" && format != "base64") {
    reader->Fail("encoding_format", "float or base64");
  }
  return format == "base64";
}

}  // namespace

absl::StatusOr<EmbeddingsRequest> ParseEmbeddingsRequest(
    absl::string_view body, const RequestContext& context) {
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json json, ParseBody(body));
  LOCKSTEP_RETURN_IF_ERROR(
      RefuseFields(json, kEmbeddings, context.unknown_fields));
  FieldReader reader(json);
  EmbeddingsRequest request;
  GenerateSpec& each = request.spec.each;
  AnswerStyle style;
  LOCKSTEP_RETURN_IF_ERROR(ReadCall(context, &reader, &each, &style));
  request.style = {.id = MakeRequestId("embd"),
                   .model = style.model,
                   .created_s = style.created_s,
                   .as_base64 = ReadAsBase64(&reader)};
  each.worker_request_id = request.style.id;
  each.embedding = ReadParams(&reader);
  each.truncation = ReadTruncation(&reader, context.model);
  const bool add = reader.Bool("add_special_tokens").value_or(true);
  LOCKSTEP_RETURN_IF_ERROR(reader.status());
  const auto* input = reader.Find(kInput);
  if (input == nullptr) return FieldError(kInput, nullptr, kAnyPrompt);
  LOCKSTEP_ASSIGN_OR_RETURN(request.spec.inputs,
                            ReadPrompts(kInput, *input, add, kMaxEmbedInputs));
  LOCKSTEP_RETURN_IF_ERROR(CheckEmbedSpec(request.spec));
  request.most_bytes = MostBytes(request);
  return request;
}

}  // namespace lockstep::openai
