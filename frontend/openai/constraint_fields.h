#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <nlohmann/json.hpp>

#include "frontend/generation/spec.h"
#include "frontend/openai/unknown_fields.h"

namespace lockstep::openai {

// What a request says its answer must be: OpenAI's response_format, vLLM's
// structured_outputs and guided_…, SGLang's json_schema, regex and ebnf; one of
// them. `body` is what `request` was parsed from: schemas keep the order of
// their keys. INVALID_ARGUMENT names the field.
absl::Status ReadConstraint(const nlohmann::json& request,
                            absl::string_view body, UnknownFields* unknown,
                            GenerateSpec* spec);

}  // namespace lockstep::openai
