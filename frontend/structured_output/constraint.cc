#include "frontend/structured_output/constraint.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "common/status_macros.h"
#include "common/strict_json.h"
#include "frontend/structured_output/gbnf.h"

namespace lockstep {
namespace {

absl::Status CheckText(absl::string_view field, const std::string& text) {
  if (!text.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is empty."));
}

}  // namespace

absl::StatusOr<Constraint> ReadJsonSchema(absl::string_view field,
                                          const std::string& text) {
  LOCKSTEP_ASSIGN_OR_RETURN(const nlohmann::json schema,
                            ParseStrictJson(text, std::string(field)));
  const bool is_schema = schema.is_object() || schema == true;
  if (!is_schema) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is no JSON schema; it must be an object."));
  }
  // How the crate is told of its own options.
  if (schema.is_object() && schema.contains("x-guidance")) {
    return absl::InvalidArgumentError(absl::StrCat(
        field, " has the keyword \"x-guidance\", which is not supported."));
  }
  return JsonSchema{schema.is_object() ? text : "{}"};
}

absl::StatusOr<Constraint> ReadRegex(absl::string_view field,
                                     const std::string& text) {
  LOCKSTEP_RETURN_IF_ERROR(CheckText(field, text));
  return Regex{text};
}

absl::StatusOr<Constraint> ReadChoices(absl::string_view field,
                                       const std::vector<std::string>& texts) {
  if (texts.empty() || texts.size() > kMaxChoiceTexts) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " holds ", texts.size(), " texts; it must hold 1 ",
                     "to ", kMaxChoiceTexts, "."));
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckText(absl::StrCat(field, "[", i, "]"), texts[i]));
    const auto before = texts.begin() + i;
    if (std::find(texts.begin(), before, texts[i]) == before) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(field, "[", i, "] is there twice."));
  }
  return OneOf{texts};
}

absl::StatusOr<Constraint> ReadGrammar(absl::string_view field,
                                       const std::string& text) {
  LOCKSTEP_RETURN_IF_ERROR(CheckText(field, text));
  if (!IsGbnf(text)) return LarkGrammar{text};
  auto lark = GbnfToLark(text);
  if (lark.ok()) return LarkGrammar{*std::move(lark)};
  return absl::Status(lark.status().code(),
                      absl::StrCat(field, " is no GBNF: ",
                                   lark.status().message()));
}

}  // namespace lockstep
