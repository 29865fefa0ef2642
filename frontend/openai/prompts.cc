#include "frontend/openai/prompts.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "common/status_macros.h"
#include "frontend/generation/error_detail.h"
#include "frontend/openai/field_reader.h"

namespace lockstep::openai {
namespace {

using nlohmann::json;

absl::StatusOr<PromptSpec> ReadPrompt(const json& value, std::string field,
                                      bool add_special_tokens,
                                      absl::string_view what_it_must_be) {
  PromptSpec prompt;
  prompt.field = std::move(field);
  if (value.is_string()) {
    prompt.prompt = TextPrompt{value.get<std::string>()};
    prompt.add_special_tokens = add_special_tokens;
    return prompt;
  }
  if (!value.is_array()) {
    return FieldError(prompt.field, value, what_it_must_be);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(auto ids, ReadTokenIds(prompt.field, value));
  prompt.prompt = TokenPrompt{std::move(ids)};
  prompt.add_special_tokens = false;
  return prompt;
}

}  // namespace

absl::StatusOr<std::vector<PromptSpec>> ReadPrompts(const std::string& field,
                                                    const json& value,
                                                    bool add_special_tokens,
                                                    size_t most) {
  std::vector<PromptSpec> prompts;
  const bool is_list =
      value.is_array() && !value.empty() && !value.front().is_number();
  if (!is_list) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        PromptSpec prompt,
        ReadPrompt(value, field, add_special_tokens, kAnyPrompt));
    prompts.push_back(std::move(prompt));
    return prompts;
  }
  if (value.size() > most) {
    return WithField(absl::InvalidArgumentError(absl::StrCat(
                         field, " holds ", value.size(), " ", field,
                         "s; at most ", most, " are allowed.")),
                     field);
  }
  for (const json& element : value) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        PromptSpec prompt,
        ReadPrompt(element, absl::StrCat(field, "[", prompts.size(), "]"),
                   add_special_tokens, "a string or a list of token ids"));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

}  // namespace lockstep::openai
