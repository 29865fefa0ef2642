#include "frontend/openai/constraint_fields.h"

#include <absl/strings/str_cat.h>

#include <string>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "frontend/generation/error_detail.h"
#include "frontend/openai/field_reader.h"
#include "frontend/openai/json_body.h"

namespace lockstep::openai {
namespace {

using nlohmann::json;
using Ordered = nlohmann::ordered_json;
using Result = absl::StatusOr<Constraint>;

// A schema, as an object or as its text.
Result SchemaOf(const std::string& field, const Ordered& value) {
  if (value.is_object() || value.is_boolean()) {
    return ReadJsonSchema(field, value.dump());
  }
  if (value.is_string()) {
    return ReadJsonSchema(field, value.get<std::string>());
  }
  return FieldError(field, json(value), "a JSON schema");
}

Result RegexOf(const std::string& field, const Ordered& value) {
  if (value.is_string()) return ReadRegex(field, value.get<std::string>());
  return FieldError(field, json(value), "a string");
}

Result GrammarOf(const std::string& field, const Ordered& value) {
  if (value.is_string()) return ReadGrammar(field, value.get<std::string>());
  return FieldError(field, json(value), "a string");
}

Result ChoiceOf(const std::string& field, const Ordered& value) {
  std::vector<std::string> texts;
  if (value.is_array()) {
    for (const Ordered& text : value) {
      if (text.is_string()) texts.push_back(text.get<std::string>());
    }
    if (texts.size() == value.size()) return ReadChoices(field, texts);
  }
  return FieldError(field, json(value), "a list of strings");
}

Result ObjectOf(const std::string& field, const Ordered& value) {
  if (value == true) return JsonSchema{kAnyObject};
  if (value == false) return Constraint();
  return FieldError(field, json(value), "true or false");
}

Result ResponseFormat(const std::string& field, const Ordered& value) {
  if (!value.is_object()) return FieldError(field, json(value), "an object");
  const std::string type =
      value.contains("type") && value["type"].is_string()
          ? value["type"].get<std::string>()
          : "";
  if (type == "text") return Constraint();
  if (type == "json_object") {
    // Some write the schema here.
    const Ordered schema = value.value("schema", Ordered());
    if (schema.is_null()) return JsonSchema{kAnyObject};
    return SchemaOf(field + ".schema", schema);
  }
  if (type != "json_schema") {
    return FieldError(field + ".type", value.value("type", Ordered()),
                      "text, json_object or json_schema");
  }
  const Ordered format = value.value("json_schema", Ordered());
  if (!format.is_object()) {
    return FieldError(field + ".json_schema", json(format), "an object");
  }
  const json fields(format);
  FieldReader reader(fields, field + ".json_schema.");
  // All answers are as strict as strict asks for.
  reader.Bool("strict");
  reader.String("name");
  LOCKSTEP_RETURN_IF_ERROR(reader.status());
  if (!format.contains("schema") || format["schema"].is_null()) {
    return JsonSchema{kAnyObject};
  }
  return SchemaOf(field + ".json_schema.schema", format["schema"]);
}

Result StructuredOutputs(const std::string& field, const Ordered& value);

struct Source {
  const char* name;
  Result (*read)(const std::string& field, const Ordered& value);
};

constexpr Source kSources[] = {
    {"response_format", ResponseFormat},
    {"structured_outputs", StructuredOutputs},
    {"guided_json", SchemaOf},
    {"guided_regex", RegexOf},
    {"guided_choice", ChoiceOf},
    {"guided_grammar", GrammarOf},
    {"guided_json_object", ObjectOf},
    {"json_schema", SchemaOf},
    {"regex", RegexOf},
    {"ebnf", GrammarOf},
};

constexpr Source kKinds[] = {
    {"json", SchemaOf},      {"regex", RegexOf},
    {"choice", ChoiceOf},    {"grammar", GrammarOf},
    {"json_object", ObjectOf},
};

absl::Status Two(const std::string& one, const std::string& other) {
  return WithField(
      absl::InvalidArgumentError(absl::StrCat(
          other, " is given besides ", one, "; an answer has one constraint.")),
      other);
}

bool IsNone(const Constraint& constraint) {
  return std::holds_alternative<std::monostate>(constraint);
}

// vLLM's object has one of its kinds, and the others null.
Result StructuredOutputs(const std::string& field, const Ordered& value) {
  if (!value.is_object()) return FieldError(field, json(value), "an object");
  Constraint found;
  std::string named;
  for (const auto& [key, kind] : value.items()) {
    if (kind.is_null()) continue;
    const std::string name = absl::StrCat(field, ".", key);
    const Source* source = nullptr;
    for (const Source& row : kKinds) {
      if (key == row.name) source = &row;
    }
    // Such as whitespace_pattern.
    if (source == nullptr && kind == false) continue;
    if (source == nullptr) {
      return WithReason(
          absl::InvalidArgumentError(absl::StrCat(name, " is not supported.")),
          kUnsupportedParameter);
    }
    LOCKSTEP_ASSIGN_OR_RETURN(Constraint constraint, source->read(name, kind));
    if (IsNone(constraint)) continue;
    if (!IsNone(found)) return Two(named, name);
    found = std::move(constraint);
    named = name;
  }
  return found;
}

void CountInResponseFormat(const json& request, UnknownFields* unknown) {
  const auto format = request.find("response_format");
  if (format == request.end() || !format->is_object()) return;
  const auto type = format->find("type");
  const bool is_object = type != format->end() && *type == "json_object";
  unknown->CountOthers(*format, "response_format.",
                       {"type", is_object ? "schema" : "json_schema"});
  const auto schema = format->find("json_schema");
  if (is_object || schema == format->end()) return;
  unknown->CountOthers(*schema, "response_format.json_schema.",
                       {"name", "description", "schema", "strict"});
}

}  // namespace

absl::Status ReadConstraint(const json& request, absl::string_view body,
                            UnknownFields* unknown, GenerateSpec* spec) {
  CountInResponseFormat(request, unknown);
  for (const Source& source : kSources) {
    const auto value = request.find(source.name);
    if (value == request.end() || value->is_null()) continue;
    auto constraint = source.read(source.name, OrderedMember(body, source.name));
    if (!constraint.ok()) return WithField(constraint.status(), source.name);
    if (IsNone(*constraint)) continue;
    if (!IsNone(spec->constraint)) {
      return Two(spec->constraint_field, source.name);
    }
    spec->constraint = *std::move(constraint);
    spec->constraint_field = source.name;
  }
  return absl::OkStatus();
}

}  // namespace lockstep::openai
