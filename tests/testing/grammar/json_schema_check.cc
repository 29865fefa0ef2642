#include "tests/testing/grammar/json_schema_check.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <algorithm>
#include <map>

namespace lockstep::testing {
namespace {

using Json = nlohmann::json;
using Check = std::string (*)(const Json& schema, const Json& value,
                              const std::string& place);

std::string Wrong(const std::string& place, const Json& value,
                  const std::string& rule) {
  return absl::StrCat(place, " is ", value.dump(), ", against ", rule);
}

int NumCharacters(const std::string& text) {
  return static_cast<int>(std::count_if(
      text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

bool IsOfType(const Json& value, const std::string& type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  if (type == "array") return value.is_array();
  CHECK_EQ(type, "object");
  return value.is_object();
}

std::string CheckType(const Json& schema, const Json& value,
                      const std::string& place) {
  if (IsOfType(value, schema["type"])) return "";
  return Wrong(place, value, schema["type"].dump());
}

std::string CheckEnum(const Json& schema, const Json& value,
                      const std::string& place) {
  for (const Json& one : schema["enum"]) {
    if (one == value) return "";
  }
  return Wrong(place, value, schema["enum"].dump());
}

std::string CheckBounds(const Json& schema, const Json& value,
                        const std::string& place) {
  if (!value.is_number()) return "";
  const double number = value;
  const bool holds = number >= schema.value("minimum", -1e300) &&
                     number <= schema.value("maximum", 1e300);
  return holds ? "" : Wrong(place, value, schema.dump());
}

std::string CheckLength(const Json& schema, const Json& value,
                        const std::string& place) {
  if (!value.is_string()) return "";
  const int length = NumCharacters(value);
  const bool holds = length >= schema.value("minLength", 0) &&
                     length <= schema.value("maxLength", 1 << 30);
  return holds ? "" : Wrong(place, value, schema.dump());
}

std::string CheckItems(const Json& schema, const Json& value,
                       const std::string& place) {
  if (!value.is_array()) return "";
  const int size = static_cast<int>(value.size());
  if (size < schema.value("minItems", 0) ||
      size > schema.value("maxItems", 1 << 30)) {
    return Wrong(place, value, schema.dump());
  }
  for (int i = 0; i < size; ++i) {
    std::string why = WhyNotOfSchema(schema.value("items", Json::object()),
                                     value[i], absl::StrCat(place, "[", i, "]"));
    if (!why.empty()) return why;
  }
  return "";
}

std::string CheckMembers(const Json& schema, const Json& value,
                         const std::string& place) {
  if (!value.is_object()) return "";
  for (const Json& key : schema.value("required", Json::array())) {
    if (!value.contains(key)) return Wrong(place, value, key.dump());
  }
  const Json& properties = schema["properties"];
  for (const auto& [key, member] : value.items()) {
    if (!properties.contains(key)) return Wrong(place, value, "members");
    std::string why = WhyNotOfSchema(properties[key], member,
                                     absl::StrCat(place, ".", key));
    if (!why.empty()) return why;
  }
  return "";
}

std::string CheckAnyOf(const Json& schema, const Json& value,
                       const std::string& place) {
  for (const Json& one : schema["anyOf"]) {
    if (WhyNotOfSchema(one, value, place).empty()) return "";
  }
  return Wrong(place, value, schema["anyOf"].dump());
}

// What `additionalProperties` says, of false, is checked by `properties`.
std::string Nothing(const Json&, const Json&, const std::string&) { return ""; }

const std::map<std::string, Check>& Checks() {
  static const std::map<std::string, Check> kChecks = {
      {"type", CheckType},         {"enum", CheckEnum},
      {"minimum", CheckBounds},    {"maximum", CheckBounds},
      {"minLength", CheckLength},  {"maxLength", CheckLength},
      {"minItems", CheckItems},    {"maxItems", CheckItems},
      {"items", CheckItems},       {"required", CheckMembers},
      {"properties", CheckMembers}, {"anyOf", CheckAnyOf},
      {"additionalProperties", Nothing}};
  return kChecks;
}

}  // namespace

std::string WhyNotOfSchema(const Json& schema, const Json& value,
                           const std::string& place) {
  for (const auto& [keyword, argument] : schema.items()) {
    const auto check = Checks().find(keyword);
    CHECK(check != Checks().end()) << "the keyword " << keyword;
    std::string why = check->second(schema, value, place);
    if (!why.empty()) return why;
  }
  return "";
}

}  // namespace lockstep::testing
