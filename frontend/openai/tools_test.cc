#include "frontend/openai/tools.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "frontend/generation/error_detail.h"
#include "tests/testing/http/parsed_request.h"

namespace lockstep::openai {
namespace {

using nlohmann::json;
using Parsed = ParsedForTest;

Parsed Parse(Endpoint endpoint, const json& request) {
  return ParseForTest(endpoint, request.dump());
}

// Chat templates show tools as they are.
TEST(Tools, ToolsKeepTheOrderOfTheirKeys) {
  const std::string function =
      R"({"name":"f","description":"d","parameters":{"b":1,"a":{}}})";
  const Parsed parsed = ParseForTest(
      kChat,
      absl::StrCat(R"({"tools":[{"type":"function","function":)", function,
                   R"(}],"messages":[{"role":"user","content":"hi"}],)",
                   R"("chat_template_kwargs":{"z":1,"y":2}})"));
  ASSERT_TRUE(parsed.status.ok()) << parsed.status;
  const auto& chat = std::get<ChatPrompt>(parsed.spec.prompt.prompt);
  EXPECT_EQ(chat.tools[0].json,
            absl::StrCat(R"({"type":"function","function":)", function, "}"));
  EXPECT_EQ(chat.template_arguments, R"({"z":1,"y":2})");
}

// A time that grows with the square of the keys would be hours.
TEST(Tools, ObjectsMayHaveManyKeys) {
  std::string many;
  for (int i = 0; i < 500'000; ++i) {
    absl::StrAppend(&many, i == 0 ? "{\"" : ",\"", i, "\":0");
  }
  many += "}";
  const std::string function = absl::StrCat(
      R"({"type":"function","function":{"name":"f","parameters":)", many, "}}");
  const auto chat = [&](const std::string& members) {
    const Parsed parsed = ParseForTest(
        kChat,
        absl::StrCat(R"({"messages":[{"role":"user","content":"hi"}],)",
                     members, "}"),
        100'000);
    EXPECT_TRUE(parsed.status.ok()) << parsed.status;
    return parsed.spec;
  };
  const auto prompt = [](const GenerateSpec& spec) {
    return std::get<ChatPrompt>(spec.prompt.prompt);
  };
  EXPECT_TRUE(
      prompt(chat(absl::StrCat(R"("tools":[)", function, "]"))).tools[0].json ==
      function);
  EXPECT_TRUE(prompt(chat(absl::StrCat(R"("chat_template_kwargs":)", many)))
                  .template_arguments == many);
  EXPECT_TRUE(prompt(chat(absl::StrCat(R"("documents":[)", many, "]")))
                  .template_arguments ==
              absl::StrCat(R"({"documents":[)", many, "]}"));
  EXPECT_TRUE(std::get<JsonSchema>(
                  chat(absl::StrCat(R"("guided_json":)", many)).constraint)
                  .text == many);
}

TEST(Tools, WhatMustBeCalledIsKnown) {
  const json tools = {{{"type", "function"},
                       {"function",
                        {{"name", "f"},
                         {"strict", true},
                         {"parameters", {{"type", "object"}}}}}},
                      {{"type", "function"}, {"function", {{"name", "g"}}}}};
  const auto chat = [&](const json& choice) {
    json request = LeastRequest(kChat);
    request["tools"] = tools;
    if (!choice.is_null()) request["tool_choice"] = choice;
    const Parsed parsed = Parse(kChat, request);
    EXPECT_TRUE(parsed.status.ok()) << parsed.status;
    return std::get<ChatPrompt>(parsed.spec.prompt.prompt);
  };
  const ChatPrompt automatic = chat(nullptr);
  EXPECT_FALSE(automatic.must_call);
  EXPECT_TRUE(automatic.tools[0].is_strict);
  EXPECT_EQ(automatic.tools[0].parameters, R"({"type":"object"})");
  EXPECT_FALSE(automatic.tools[1].is_strict);
  EXPECT_EQ(automatic.tools[1].parameters, "");
  EXPECT_TRUE(chat("required").must_call);
  EXPECT_EQ(chat("required").required_tool, "");
  const ChatPrompt named =
      chat({{"type", "function"}, {"function", {{"name", "g"}}}});
  EXPECT_TRUE(named.must_call);
  EXPECT_EQ(named.required_tool, "g");
  EXPECT_TRUE(chat("none").tools.empty());
}

TEST(Tools, ToolsThatAreNoneAreNamed) {
  const auto function = [](json more) {
    more["name"] = "f";
    return json::array({{{"type", "function"}, {"function", more}}});
  };
  const json one = function(json::object());
  json two = one;
  two.push_back(one[0]);
  const struct {
    json request;
    const char* field;
    const char* error;
  } kCases[] = {
      {{{"tools", {7}}}, "tools", "tools[0] is 7; it must be an object."},
      {{{"tools", {{{"type", "function"}}}}},
       "tools",
       "tools[0].function is null; it must be an object."},
      {{{"tools", {{{"type", "search"}}}}},
       "tools",
       "tools[0] of type \"search\" is not supported: tools are functions."},
      {{{"tools", {{{"function", json::object()}}}}},
       "tools",
       "tools[0].function.name is null; it must be a string."},
      {{{"tools", {{{"function", {{"name", "a b"}}}}}}},
       "tools",
       "tools[0] is named \"a b\"; a name is 1 to 64 characters of "
       "[A-Za-z0-9_.-]."},
      {{{"tools", two}},
       "tools",
       "tools[1] is named \"f\", as one before it is."},
      {{{"tools", one},
        {"tool_choice", {{"type", "function"}, {"function", {{"name", "g"}}}}}},
       "tool_choice",
       "tool_choice.function.name is \"g\"; it must be the name of one of the "
       "tools."},
      {{{"tools", one}, {"tool_choice", {{"type", "allowed_tools"}}}},
       "tool_choice",
       "tool_choice of type \"allowed_tools\" is not supported: it names one "
       "function."},
      {{{"tools", one}, {"tool_choice", "any"}},
       "tool_choice",
       "tool_choice is \"any\"; it must be \"none\", \"auto\", \"required\" or "
       "one function's name."},
      {{{"tool_choice", "required"}},
       "tool_choice",
       "tool_choice is \"required\"; it must be left out where there are no "
       "tools."},
      {{{"tool_choice", "auto"}},
       "tool_choice",
       "tool_choice is \"auto\"; it must be left out where there are no "
       "tools."},
  };
  for (const auto& c : kCases) {
    json request = LeastRequest(kChat);
    request.update(c.request);
    const absl::Status status = Parse(kChat, request).status;
    EXPECT_EQ(status.message(), c.error);
    EXPECT_EQ(FieldOf(status), c.field);
  }
}

}  // namespace
}  // namespace lockstep::openai
