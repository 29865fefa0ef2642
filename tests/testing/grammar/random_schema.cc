#include "tests/testing/grammar/random_schema.h"

#include <string>

namespace lockstep::testing {
namespace {

using Json = nlohmann::json;

int Draw(std::mt19937& random, int below) {
  return static_cast<int>(random() % below);
}

Json Integer(std::mt19937& random) {
  const int minimum = Draw(random, 2000) - 1000;
  return {{"type", "integer"},
          {"minimum", minimum},
          {"maximum", minimum + Draw(random, 500)}};
}

Json String(std::mt19937& random) {
  const int least = Draw(random, 3);
  return {{"type", "string"},
          {"minLength", least},
          {"maxLength", least + Draw(random, 8)}};
}

Json Enum(std::mt19937& random) {
  Json values = {"red", "green", "b\"l\\ue", 7, true, nullptr, "ü"};
  while (values.size() > 1 + Draw(random, 3)) {
    values.erase(Draw(random, static_cast<int>(values.size())));
  }
  return {{"enum", values}};
}

Json Array(std::mt19937& random, int depth) {
  const int least = Draw(random, 2);
  return {{"type", "array"},
          {"items", RandomSchema(random, depth - 1)},
          {"minItems", least},
          {"maxItems", least + Draw(random, 3)}};
}

Json Object(std::mt19937& random, int depth) {
  Json properties = Json::object(), required = Json::array();
  for (int i = Draw(random, 4); i > 0; --i) {
    const std::string key(1, static_cast<char>('a' + i));
    properties[key] = RandomSchema(random, depth - 1);
    if (Draw(random, 2) == 0) required.push_back(key);
  }
  return {{"type", "object"},
          {"properties", properties},
          {"required", required},
          {"additionalProperties", false}};
}

Json AnyOf(std::mt19937& random, int depth) {
  return {{"anyOf",
           {RandomSchema(random, depth - 1), RandomSchema(random, depth - 1)}}};
}

}  // namespace

Json RandomSchema(std::mt19937& random, int depth) {
  switch (Draw(random, depth > 0 ? 8 : 5)) {
    case 0:
      return {{"type", "boolean"}};
    case 1:
      return {{"type", "null"}};
    case 2:
      return Integer(random);
    case 3:
      return String(random);
    case 4:
      return Enum(random);
    case 5:
      return Array(random, depth);
    case 6:
      return AnyOf(random, depth);
    default:
      return Object(random, depth);
  }
}

}  // namespace lockstep::testing
