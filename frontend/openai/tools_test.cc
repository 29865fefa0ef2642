#include "frontend/openai/tools.h"

#include <absl/strings/match.h>
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

// As tools were called before.
TEST(Tools, FunctionsAreTools) {
  const json f = {{"name", "f"}, {"parameters", {{"type", "object"}}}};
  const json g = {{"name", "g"}, {"description", "d"}};
  const json as_tools = json::array({{{"type", "function"}, {"function", f}},
                                     {{"type", "function"}, {"function", g}}});
  const json named = {{"name", "g"}};
  const json choices[][2] = {
      {nullptr, nullptr},
      {"auto", "auto"},
      {"none", "none"},
      {named, {{"type", "function"}, {"function", named}}}};
  for (const auto& [old_choice, choice] : choices) {
    SCOPED_TRACE(choice.dump());
    json request = LeastRequest(kChat);
    json old = request;
    request["tools"] = as_tools;
    request["tool_choice"] = choice;
    old["functions"] = {f, g};
    old["function_call"] = old_choice;
    const Parsed parsed = Parse(kChat, request), same = Parse(kChat, old);
    ASSERT_TRUE(parsed.status.ok()) << parsed.status;
    ASSERT_TRUE(same.status.ok()) << same.status;
    EXPECT_EQ(same.unknown, 0);
    EXPECT_TRUE(same.style.calls_function);
    EXPECT_FALSE(same.spec.parallel_tool_calls);
    const auto& chat = std::get<ChatPrompt>(parsed.spec.prompt.prompt);
    const auto& old_chat = std::get<ChatPrompt>(same.spec.prompt.prompt);
    EXPECT_EQ(old_chat.must_call, chat.must_call);
    EXPECT_EQ(old_chat.required_tool, chat.required_tool);
    ASSERT_EQ(old_chat.tools.size(), chat.tools.size());
    for (size_t i = 0; i < chat.tools.size(); ++i) {
      EXPECT_EQ(json::parse(old_chat.tools[i].json),
                json::parse(chat.tools[i].json));
      EXPECT_EQ(old_chat.tools[i].parameters, chat.tools[i].parameters);
    }
  }
}

TEST(Tools, WhatAFunctionAnsweredGoesBackAsATools) {
  json request = LeastRequest(kChat);
  const json call = {{"name", "f"}, {"arguments", "{}"}};
  request["messages"].push_back(
      {{"role", "assistant"}, {"content", nullptr}, {"function_call", call}});
  request["messages"].push_back(
      {{"role", "function"}, {"name", "f"}, {"content", "7"}});
  const Parsed parsed = Parse(kChat, request);
  ASSERT_TRUE(parsed.status.ok()) << parsed.status;
  const auto& messages =
      std::get<ChatPrompt>(parsed.spec.prompt.prompt).messages;
  ASSERT_EQ(messages[1].tool_calls.size(), 1);
  EXPECT_EQ(messages[1].tool_calls[0].name, "f");
  EXPECT_EQ(messages[2].role, "tool");
  EXPECT_EQ(messages[2].name, "f");
  EXPECT_EQ(messages[2].content, "7");
}

TEST(Tools, FunctionsAreRefusedInTheirOwnWords) {
  const json f = {{"name", "f"}};
  const json tools = json::array({{{"function", f}}});
  const struct {
    json fields;
    const char* field;
    const char* error;
  } kCases[] = {
      {{{"functions", json::array({f})}, {"tools", tools}},
       "functions",
       "left out where there are tools"},
      {{{"functions", json::array({json::object()})}},
       "functions",
       "functions[0].name is null; it must be a string."},
      {{{"functions", json::array({f})}, {"function_call", "required"}},
       "function_call",
       "it must be \"none\", \"auto\" or one function's name."},
      {{{"functions", json::array({f})}, {"function_call", {{"name", "g"}}}},
       "function_call",
       "function_call.name is \"g\"; it must be the name of one of the tools."},
      {{{"function_call", "auto"}},
       "function_call",
       "left out where there are no functions"},
  };
  for (const auto& c : kCases) {
    json request = LeastRequest(kChat);
    request.update(c.fields);
    const absl::Status status = Parse(kChat, request).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(FieldOf(status), c.field) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), c.error)) << status;
  }
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
