#include "frontend/openai/constraint_fields.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "frontend/generation/error_detail.h"
#include "tests/testing/http/parsed_request.h"

namespace lockstep::openai {
namespace {

using nlohmann::json;

ParsedForTest ParseWith(const json& fields) {
  json request = LeastRequest(kChat);
  request.update(fields);
  return ParseForTest(kChat, request.dump());
}

Constraint ConstraintOf(const json& fields) {
  const ParsedForTest parsed = ParseWith(fields);
  EXPECT_TRUE(parsed.status.ok()) << parsed.status;
  return parsed.spec.constraint;
}

std::string SchemaOf(const json& fields) {
  return std::get<JsonSchema>(ConstraintOf(fields)).text;
}

json Format(const json& json_schema) {
  return {{"response_format",
           {{"type", "json_schema"}, {"json_schema", json_schema}}}};
}

const json kSchema = {{"type", "object"}};
constexpr char kText[] = R"({"type":"object"})";

TEST(ConstraintFields, EachSaysTheSameInItsWay) {
  EXPECT_EQ(SchemaOf(Format({{"name", "x"}, {"schema", kSchema}})), kText);
  EXPECT_EQ(SchemaOf(Format({{"name", "x"}, {"strict", true}})), kText);
  EXPECT_EQ(SchemaOf({{"response_format", {{"type", "json_object"}}}}), kText);
  // Not any object, where one is described.
  const json narrow = {{"required", json::array({"a"})},
                       {"type", "object"}};
  EXPECT_EQ(SchemaOf({{"response_format",
                       {{"type", "json_object"}, {"schema", narrow}}}}),
            narrow.dump());
  EXPECT_EQ(SchemaOf({{"response_format",
                       {{"type", "json_object"}, {"schema", nullptr}}}}),
            kText);
  EXPECT_EQ(SchemaOf({{"guided_json", kSchema}}), kText);
  EXPECT_EQ(SchemaOf({{"guided_json", kText}}), kText);
  EXPECT_EQ(SchemaOf({{"structured_outputs", {{"json", kSchema}}}}), kText);
  EXPECT_EQ(SchemaOf({{"structured_outputs",
                       {{"json", nullptr}, {"json_object", true}}}}),
            kText);
  EXPECT_EQ(std::get<Regex>(
                ConstraintOf({{"structured_outputs", {{"regex", "a+"}}}}))
                .text,
            "a+");
  EXPECT_EQ(std::get<OneOf>(ConstraintOf({{"guided_choice", {"a", "b", "c"}}}))
                .texts.size(),
            3);
  EXPECT_EQ(std::get<LarkGrammar>(ConstraintOf({{"ebnf", "root ::= \"a\""}}))
                .text,
            "start: /a/\n");
}

TEST(ConstraintFields, SomeAskForNothing) {
  for (const json& fields : {json{{"response_format", {{"type", "text"}}}},
                             json{{"response_format", nullptr}},
                             json{{"guided_json_object", false}},
                             json{{"structured_outputs", json::object()}}}) {
    EXPECT_EQ(ConstraintOf(fields).index(), 0) << fields;
  }
}

// The answer's keys come in this order.
TEST(ConstraintFields, SchemasKeepTheOrderOfTheirKeys) {
  const std::string schema =
      R"({"type":"object","properties":{"b":{},"a":{}}})";
  json request = LeastRequest(kChat);
  std::string body = request.dump();
  body.insert(1, absl::StrCat("\"guided_json\":", schema, ","));
  const ParsedForTest parsed = ParseForTest(kChat, body);
  EXPECT_EQ(std::get<JsonSchema>(parsed.spec.constraint).text, schema);
}

TEST(ConstraintFields, WhatIsWrongIsNamed) {
  const struct {
    json fields;
    const char* field;
    const char* error;
  } kCases[] = {
      {{{"response_format", {{"type", "yaml"}}}},
       "response_format",
       "response_format.type is \"yaml\"; it must be text, json_object or "
       "json_schema."},
      {{{"response_format", {{"type", "json_schema"}}}},
       "response_format",
       "response_format.json_schema is null; it must be an object."},
      {Format({{"schema", 7}}),
       "response_format",
       "response_format.json_schema.schema is 7; it must be a JSON schema."},
      {Format({{"schema", {{"x-guidance", {}}}}}),
       "response_format",
       "response_format.json_schema.schema has the keyword \"x-guidance\", "
       "which is not supported."},
      {{{"guided_regex", ""}}, "guided_regex", "guided_regex is empty."},
      {{{"guided_choice", json::array()}},
       "guided_choice",
       "guided_choice holds 0 texts; it must hold 1 to 1024."},
      {{{"structured_outputs", {{"structural_tag", "x"}}}},
       "structured_outputs",
       "structured_outputs.structural_tag is not supported."},
      {{{"structured_outputs", {{"regex", "a"}, {"json", kSchema}}}},
       "structured_outputs",
       "structured_outputs.regex is given besides structured_outputs.json; an "
       "answer has one constraint."},
      {{{"guided_regex", "a"}, {"response_format", {{"type", "json_object"}}}},
       "guided_regex",
       "guided_regex is given besides response_format; an answer has one "
       "constraint."},
      {{{"ebnf", "root ::= ("}},
       "ebnf",
       "ebnf is no GBNF: line 1 has a ( that nothing closes"},
  };
  for (const auto& c : kCases) {
    const absl::Status status = ParseWith(c.fields).status;
    EXPECT_EQ(status.message(), c.error);
    EXPECT_EQ(FieldOf(status), c.field);
  }
}

}  // namespace
}  // namespace lockstep::openai
