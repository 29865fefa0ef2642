#include "tokenizer_service/chat_template.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/testing/test_data.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::string> Render(absl::string_view source,
                                   absl::string_view context_json) {
  auto chat_template = ChatTemplate::Compile(source, {});
  if (!chat_template.ok()) return chat_template.status();
  return (*chat_template)->Render(context_json);
}

TEST(ChatTemplate, RendersEveryFeatureAsHuggingFaceDoes) {
  const auto goldens =
      testing::ReadJson("tests/goldens/tokenizers/chat_goldens.json");
  const std::string values = goldens["values"].dump();
  for (const auto& golden : goldens["features"]) {
    const std::string source = golden["source"];
    SCOPED_TRACE(source);
    const auto text = Render(source, values);
    if (golden.contains("text")) {
      ASSERT_TRUE(text.ok()) << text.status();
      EXPECT_EQ(*text, golden["text"].get<std::string>());
    } else {
      EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
    }
    if (golden.contains("raises")) {
      EXPECT_EQ(std::string(text.status().message()),
                golden["raises"].get<std::string>());
    }
  }
}

TEST(ChatTemplate, TakesVariablesUnlessTheContextHasThem) {
  const auto chat_template =
      ChatTemplate::Compile("{{ bos_token }}|{{ eos_token }}",
                            {{"bos_token", "<s>"}, {"eos_token", "\"</s>\""}});
  ASSERT_TRUE(chat_template.ok());
  EXPECT_EQ(*(*chat_template)->Render("{}"), "<s>|\"</s>\"");
  EXPECT_EQ(*(*chat_template)->Render(R"({"bos_token": "x"})"), "x|\"</s>\"");
}

TEST(ChatTemplate, WritesTheTimeAsAsked) {
  const auto text = Render("{{ strftime_now('%Y-%m-%d %H') }}", "{}");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text,
              ::testing::MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}"));
}

TEST(ChatTemplate, SaysWhereItFails) {
  EXPECT_THAT(ChatTemplate::Compile("one\n{% if %}", {}).status().message(),
              HasSubstr("chat_template:2"));
  EXPECT_THAT(Render("one\n\n{{ a.b.c }}", "{}").status().message(),
              HasSubstr("chat_template:3"));
}

TEST(ChatTemplate, RefusesAContextThatIsNoObject) {
  for (const char* context : {"", "{", "[]", "7", "\"x\"", "null", "{} {}"}) {
    EXPECT_EQ(Render("x", context).status().code(),
              absl::StatusCode::kInvalidArgument)
        << context;
  }
}

TEST(ChatTemplate, EndsWhatWouldNeverEnd) {
  // A hundred thousand times a hundred thousand rounds.
  const auto loops = Render(
      "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}"
      "{% endfor %}",
      "{}");
  EXPECT_EQ(loops.status().code(), absl::StatusCode::kInvalidArgument);
  const auto doubling = Render(
      "{% set ns = namespace(s='x') %}{% for i in range(99) %}"
      "{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{}");
  EXPECT_EQ(doubling.status().code(), absl::StatusCode::kInvalidArgument);
  const auto recursion =
      Render("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{}");
  EXPECT_EQ(recursion.status().code(), absl::StatusCode::kInvalidArgument);
}

// Each of these would take gigabytes or minutes.
TEST(ChatTemplate, BoundsWhatATemplateMakes) {
  std::string doubling = "{% set x0 = [1] %}";
  for (int i = 0; i < 40; ++i) {
    absl::StrAppend(&doubling, "{% set x", i + 1, " = x", i, " + x", i, " %}");
  }
  const struct {
    std::string source;
    const char* error;
  } kCases[] = {
      {doubling + "{{ x40 | tojson }}",
       "a list has 2097152 items; at most "
       "1048576 are allowed"},
      {"{{ [1] | tojson(indent=65) }}",
       "tojson: the indent is 65; at most 64 is allowed"},
      {"{{ [1] | tojson(indent=70000) }}", "the indent is 70000"},
      {"{{ ([[1]] * 100000) | tojson(indent=30000) }}", "the indent is 30000"},
      {"{{ ([[[[[1]]]]] * 80000) | tojson(indent=64) }}",
       "JSON of more than the 67108864 bytes allowed"},
      {"{{ (['x' * 1000000] * 1000000) | tojson }}",
       "JSON of more than the 67108864 bytes allowed"},
      {"{{ ((((([1] * 9999) + [1]) * 9999) + [1]) * 1) | tojson }}",
       "JSON of more than the 67108864 bytes allowed"},
      {"{{ ('x' * 99000000) | tojson }}",
       "JSON of more than the 67108864 bytes allowed"},
      {"{{ '%1000000000d' | format(1) }}",
       "takes more than 4194304 instructions, or makes more than 268435456 "
       "bytes"},
      {"{{ '{:1000000000}'.format(1) }}",
       "a format with a number of more than 4 digits"},
      {"{% set s = ' ' * 9000000 %}{% for i in range(99999) %}"
       "{{ s.lstrip() }}{% endfor %}",
       "takes more than 4194304 instructions"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.source);
    const auto text = Render(c.source, "{}");
    EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(text.status().message(), HasSubstr(c.error));
  }
}

TEST(ChatTemplate, LeavesRoomForTheLongestChat) {
  // 16384 messages of 500 bytes, written as JSON too.
  nlohmann::json context;
  for (int i = 0; i < 16'384; ++i) {
    context["messages"].push_back(
        {{"role", "user"}, {"content", std::string(500, 'x')}});
  }
  const auto text = Render(
      "{% for m in messages %}{% set c = m.content.strip() | trim %}"
      "{% if m.role == 'user' and loop.index0 % 2 == 0 %}"
      "{{ '<|start|>' + m['role'] + '\n' + c + '<|end|>' }}"
      "{% else %}{{ '<|start|>' + m['role'] + c | tojson }}{% endif %}"
      "{% endfor %}",
      context.dump());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_GT(text->size(), 8'000'000);
}

// Walking over such values would overflow the stack.
TEST(ChatTemplate, KeepsOnlyDataInNamespaces) {
  const struct {
    const char* source;
    const char* error;
  } kCases[] = {
      {"{% set ns.x = ns %}{{ ns }}", "can not hold namespaces"},
      {"{% set y = ns %}{% set ns.x = [{'a': y}] %}{{ ns }}",
       "can not hold namespaces"},
      {"{% set ns.x, z = ns, 1 %}{{ ns }}", "can not hold namespaces"},
      {"{% set (ns.x) = namespace(y=1) %}", "can not hold namespaces"},
      {"{% set ns.x | default(ns, true) %}{% endset %}{{ ns }}",
       "can not hold namespaces"},
      {"{% macro m() %}{% endmacro %}{% set ns.x = m %}",
       "can not hold macros"},
      {"{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}",
       "nested deeper than 64"},
      {"{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}",
       "more than a million values"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.source);
    const auto text =
        Render(absl::StrCat("{% set ns = namespace() %}", c.source), "{}");
    EXPECT_THAT(text.status().message(), HasSubstr(c.error));
  }
}

TEST(ChatTemplate, NamesTheSizeOfATemplateThatIsTooLong) {
  const auto chat_template =
      ChatTemplate::Compile(std::string(200'000, 'x'), {});
  EXPECT_THAT(chat_template.status().message(),
              HasSubstr("200000 bytes, more than the 131072 allowed"));
}

}  // namespace
}  // namespace lockstep
