#include <absl/strings/str_cat.h>

#include <limits>
#include <utility>

#include "common/request_id.h"
#include "common/status_macros.h"
#include "frontend/generation/spec_check.h"
#include "frontend/openai/constraint_fields.h"
#include "frontend/openai/json_body.h"
#include "frontend/openai/prompts.h"
#include "frontend/openai/request.h"
#include "frontend/openai/sampling_fields.h"

namespace lockstep::openai {
namespace {

using nlohmann::json;

constexpr int64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();
constexpr int64_t kMaxLogprobs = 20;
constexpr size_t kMaxPrompts = 256;
constexpr size_t kMaxChoices = 4096;        // of all prompts
constexpr uint32_t kDefaultMaxTokens = 16;  // OpenAI's
constexpr char kPrompt[] = "prompt";

// Scoring a prompt takes an answer of one token, which is not shown.
void ReadMaxTokens(FieldReader* reader, GenerateSpec* spec,
                   AnswerStyle* style) {
  style->echo = reader->Bool("echo").value_or(false);
  const auto most = reader->Integer("max_tokens", 0, kMaxUint32);
  style->prompt_only = most == 0;
  if (style->prompt_only && !style->echo) {
    reader->Fail("max_tokens", "at least 1, unless echo is true");
  }
  spec->sampling.set_max_tokens(
      style->prompt_only ? 1 : most.value_or(kDefaultMaxTokens));
}

void ReadLogprobs(FieldReader* reader, GenerateSpec* spec, AnswerStyle* style) {
  const auto logprobs = reader->Integer("logprobs", 0, kMaxLogprobs);
  if (!logprobs.has_value()) return;
  style->logprobs = true;
  v1::SamplingParams& sampling = spec->sampling;
  sampling.set_logprobs(*logprobs);
  if (style->echo &&
      (!sampling.has_prompt_logprobs() ||
       sampling.prompt_logprobs() < static_cast<uint32_t>(*logprobs))) {
    sampling.set_prompt_logprobs(*logprobs);
  }
}

}  // namespace

absl::StatusOr<ParsedRequest> ParseCompletionRequest(
    absl::string_view body, const RequestContext& context) {
  LOCKSTEP_ASSIGN_OR_RETURN(const json json, ParseBody(body));
  LOCKSTEP_RETURN_IF_ERROR(
      RefuseFields(json, kCompletions, context.unknown_fields));
  FieldReader reader(json);
  GenerateSpec spec;
  ParsedRequest parsed;
  AnswerStyle& style = parsed.style;
  style.endpoint = kCompletions;
  LOCKSTEP_RETURN_IF_ERROR(ReadCommonFields(context, &reader, &spec, &style));
  ReadMaxTokens(&reader, &spec, &style);
  ReadLogprobs(&reader, &spec, &style);
  spec.return_prompt = style.return_token_ids || style.echo;
  const bool add = reader.Bool("add_special_tokens").value_or(true);
  LOCKSTEP_RETURN_IF_ERROR(ReadTruncation(context, &reader, &spec));
  LOCKSTEP_RETURN_IF_ERROR(
      ReadConstraint(json, body, context.unknown_fields, &spec));
  const auto* prompt = reader.Find(kPrompt);
  if (prompt == nullptr) return FieldError(kPrompt, nullptr, kAnyPrompt);
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<PromptSpec> prompts,
                            ReadPrompts(kPrompt, *prompt, add, kMaxPrompts));
  if (prompts.size() * style.n > kMaxChoices) {
    return FieldError("n", style.n,
                      absl::StrCat("at most ", kMaxChoices / prompts.size(),
                                   " with ", prompts.size(), " prompts"));
  }
  style.id = MakeRequestId("cmpl");
  for (PromptSpec& each : prompts) {
    LOCKSTEP_RETURN_IF_ERROR(CheckPrompt(each, spec.truncation, context.model));
    GenerateSpec& next = parsed.specs.emplace_back(spec);
    next.prompt = std::move(each);
    next.worker_request_id =
        prompts.size() == 1
            ? style.id
            : absl::StrCat(style.id, "-", parsed.specs.size() - 1);
  }
  return parsed;
}

}  // namespace lockstep::openai
