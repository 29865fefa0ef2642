// What a grammar of the gateway's lets a model write, the gateway's parsers
// read back: thoughts, then calls of the tools that were offered, with
// arguments of their schemas. Each format is walked at random; a failure prints
// its seed.

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "frontend/output_parsing/output_format.h"
#include "frontend/output_parsing/output_parser.h"
#include "frontend/structured_output/answer_grammar.h"
#include "tests/testing/grammar/json_schema_check.h"
#include "worker/grammar/grammar_vocabulary.h"

namespace lockstep {
namespace {

using ::lockstep::testing::WhyNotOfSchema;
using Json = nlohmann::json;

constexpr int kWalks = 12;
constexpr int kMostTokens = 2000;
constexpr int kNumBytes = 256;

const Json kWeather = {
    {"type", "object"},
    {"properties",
     {{"city", {{"enum", {"Zürich", "Bern"}}}},
      {"days", {{"type", "integer"}, {"minimum", 1}, {"maximum", 9}}},
      {"hourly", {{"type", "boolean"}}}}},
    {"required", {"city"}},
    {"additionalProperties", false}};

struct Writer {
  OutputFormat format;
  // Whether the tokenizer calls the marks special.
  bool has_special_marks = false;
  bool is_fenced = false;
  bool starts_in_reasoning = false;
  // What the model writes first; marks and text in turn.
  std::vector<std::string> begins = {};
};

// A token for each byte, one for each mark, and the end.
class Walker {
 public:
  Walker(const Writer& writer, uint32_t seed) : writer_(writer), random_(seed) {
    for (int byte = 0; byte < kNumBytes; ++byte) {
      Add(std::string(1, static_cast<char>(byte)), false);
    }
    dialect_ = {.format = writer.format.tools,
                .marks = {},
                .is_fenced = writer.is_fenced};
    for (const absl::string_view mark : MarksOf(writer.format)) {
      if (writer.has_special_marks) {
        dialect_.marks.emplace(mark, static_cast<uint32_t>(texts_.size()));
      }
      Add(std::string(mark), writer.has_special_marks);
    }
    end_ = static_cast<uint32_t>(texts_.size());
    Add("<end>", true);
    vocabulary_ = *GrammarVocabulary::Create(tokens_, texts_.size(), {end_});
  }

  // An answer, up to its end; empty and a failure where there is none.
  std::string Answer(const AnswerLimits& limits) {
    const auto grammar = MakeAnswerGrammar(
        limits, {.reasoning = writer_.format.reasoning,
                 .starts_in_reasoning = writer_.starts_in_reasoning,
                 .calls = dialect_});
    SCOPED_TRACE(grammar->lark());
    auto matcher = vocabulary_->Compile(*grammar);
    EXPECT_TRUE(matcher.ok()) << matcher.status();
    if (!matcher.ok()) return "";
    std::string text;
    for (const std::string& part : writer_.begins) {
      if (!Follow(part, *matcher, &text)) return "";
    }
    for (int i = 0; i < kMostTokens; ++i) {
      const std::optional<uint32_t> id = Next(*matcher);
      if (!id.has_value()) return text;
      EXPECT_EQ(*matcher->Consume({*id}), 1);
      text += texts_[*id];
    }
    ADD_FAILURE() << "no end after " << text;
    return "";
  }

 private:
  void Add(const std::string& text, bool is_special) {
    tokens_.Add(text, is_special);
    texts_.push_back(text);
  }

  bool Follow(const std::string& part, GrammarMatcher& matcher,
              std::string* text) {
    std::vector<uint32_t> ids;
    const auto mark = dialect_.marks.find(part);
    if (mark != dialect_.marks.end()) {
      ids = {mark->second};
    } else {
      for (const char c : part) ids.push_back(static_cast<uint8_t>(c));
    }
    EXPECT_EQ(*matcher.Consume(ids), ids.size()) << "at " << part;
    *text += part;
    return !::testing::Test::HasFailure();
  }

  // Of the ids that may come any; a mark or the end, where one may, half of the
  // time: what is free has an end soon.
  std::optional<uint32_t> Next(GrammarMatcher& matcher) {
    std::vector<uint32_t> mask(NumMaskWords(texts_.size())), bytes, marks;
    EXPECT_TRUE(matcher.FillMask(absl::MakeSpan(mask)).ok());
    for (uint32_t id = 0; id < texts_.size(); ++id) {
      if ((mask[id / 32] >> (id % 32) & 1) == 0) continue;
      (id < kNumBytes ? bytes : marks).push_back(id);
    }
    const bool takes_mark =
        bytes.empty() || (!marks.empty() && random_() % 2 == 0);
    const std::vector<uint32_t>& choices = takes_mark ? marks : bytes;
    EXPECT_FALSE(choices.empty());
    if (choices.empty()) return std::nullopt;
    const uint32_t id = choices[random_() % choices.size()];
    if (id == end_) return std::nullopt;
    return id;
  }

  const Writer writer_;
  std::mt19937 random_;
  TokenBytes tokens_;
  std::vector<std::string> texts_;
  CallDialect dialect_;
  uint32_t end_ = 0;
  std::unique_ptr<GrammarVocabulary> vocabulary_;
};

struct Call {
  std::string name;
  std::string arguments;
};

struct Reading {
  OutputDelta all;
  std::vector<Call> calls;
  bool all_are_whole = false;
};

Reading Read(const Writer& writer, const std::string& text) {
  int ids = 0;
  auto parser = MakeOutputParser(
      writer.format,
      {.has_tools = true,
       .calls = {.names = {"weather", "time"},
                 .several = true,
                 .make_id = [&ids] { return absl::StrCat("id", ids++); }},
       .starts_in_reasoning = writer.starts_in_reasoning});
  Reading reading;
  parser->Add(text, &reading.all);
  parser->Finish(&reading.all);
  for (const ToolCallDelta& part : reading.all.tool_calls) {
    if (part.index == reading.calls.size()) {
      reading.calls.push_back({part.name, ""});
    }
    reading.calls[part.index].arguments += part.arguments;
  }
  reading.all_are_whole =
      parser->num_whole_calls() == parser->num_begun_calls();
  return reading;
}

std::vector<Writer> Writers() {
  using R = ReasoningFormat;
  using T = ToolFormat;
  return {
      {.format = {T::kHermes, R::kNone}},
      {.format = {T::kHermes, R::kNone}, .has_special_marks = true},
      {.format = {T::kHermes, R::kThink},
       .begins = {"<think>", "\nHm, <b>?\n", "</think>", "\n\n"}},
      {.format = {T::kHermes, R::kThink},
       .has_special_marks = true,
       .begins = {"<think>", "Hm", "</think>"}},
      {.format = {T::kHermes, R::kThink}, .begins = {"<tool_call>"}},
      {.format = {T::kHermes, R::kThinkFirst},
       .starts_in_reasoning = true,
       .begins = {"Hm.", "</think>", "\n"}},
      {.format = {T::kLlama3Json, R::kNone}},
      {.format = {T::kPythonic, R::kNone}},
      {.format = {T::kMistral, R::kNone}},
      {.format = {T::kMistral, R::kNone}, .has_special_marks = true},
      {.format = {T::kMistral, R::kMistral},
       .has_special_marks = true,
       .begins = {"[THINK]", "Hm", "[/THINK]"}},
      {.format = {T::kDeepSeek, R::kThinkFirst},
       .starts_in_reasoning = true,
       .begins = {"Hm", "</think>"}},
      {.format = {T::kDeepSeek, R::kNone},
       .has_special_marks = true,
       .is_fenced = true},
      {.format = {T::kHarmony, R::kHarmony},
       .has_special_marks = true,
       .begins = {"<|channel|>", "analysis", "<|message|>", "Hm", "<|end|>",
                  "<|start|>", "assistant"}},
  };
}

AnswerLimits MustCall(bool several) {
  return {.tools = {{"weather", kWeather.dump()}, {"time", ""}},
          .must_call = true,
          .several_calls = several};
}

class ToolGrammarTest : public ::testing::Test {
 protected:
  static void ExpectGoodCalls(const Reading& reading, bool several) {
    EXPECT_TRUE(reading.all_are_whole);
    EXPECT_EQ(reading.all.content, "");
    EXPECT_GE(reading.calls.size(), 1);
    EXPECT_TRUE(several || reading.calls.size() == 1);
    for (const Call& call : reading.calls) {
      const Json arguments = Json::parse(call.arguments, nullptr, false);
      ASSERT_FALSE(arguments.is_discarded()) << call.arguments;
      if (call.name == "time") {
        EXPECT_EQ(arguments, Json::object());
      } else {
        EXPECT_EQ(call.name, "weather");
        EXPECT_EQ(WhyNotOfSchema(kWeather, arguments), "");
      }
    }
  }

  const uint32_t seed_ = std::random_device()();
  const ::testing::ScopedTrace trace_{__FILE__, __LINE__,
                                      absl::StrCat("seed ", seed_)};
};

TEST_F(ToolGrammarTest, ForcedCallsAreReadBack) {
  for (const Writer& writer : Writers()) {
    Walker walker(writer, seed_);
    for (int i = 0; i < kWalks; ++i) {
      const bool several = i % 2 == 0;
      const std::string text = walker.Answer(MustCall(several));
      SCOPED_TRACE(absl::StrCat(writer.format.ToString(), ": ", text));
      ExpectGoodCalls(Read(writer, text), several);
      if (HasFailure()) return;
    }
  }
}

TEST_F(ToolGrammarTest, ANamedToolIsTheOneThatIsCalled) {
  for (const Writer& writer : Writers()) {
    Walker walker(writer, seed_);
    AnswerLimits limits = MustCall(false);
    limits.tools.erase(limits.tools.begin() + 1);
    const Reading reading = Read(writer, walker.Answer(limits));
    ASSERT_EQ(reading.calls.size(), 1) << writer.format.ToString();
    EXPECT_EQ(reading.calls[0].name, "weather");
  }
}

TEST_F(ToolGrammarTest, WhatIsSaidIsOfItsConstraint) {
  for (const Writer& writer : Writers()) {
    if (!writer.begins.empty() && writer.begins[0] == "<tool_call>") continue;
    Walker walker(writer, seed_);
    const std::string text =
        walker.Answer({.constraint = JsonSchema{kWeather.dump()}});
    SCOPED_TRACE(absl::StrCat(writer.format.ToString(), ": ", text));
    const Reading reading = Read(writer, text);
    const Json said = Json::parse(reading.all.content, nullptr, false);
    ASSERT_FALSE(said.is_discarded());
    EXPECT_EQ(WhyNotOfSchema(kWeather, said), "");
  }
}

// Where a call is not required, one that is begun must be good all the same.
TEST_F(ToolGrammarTest, AStrictToolIsCalledAsItSays) {
  for (Writer writer : Writers()) {
    const ToolFormat tools = writer.format.tools;
    if (tools == ToolFormat::kHarmony) {
      writer.begins.insert(writer.begins.end(),
                           {"<|channel|>", "commentary to=functions."});
    } else if (tools == ToolFormat::kLlama3Json) {
      writer.begins.push_back("{\"name\": \"");
    } else if (tools == ToolFormat::kPythonic) {
      writer.begins.push_back("[");
    } else if (writer.begins.empty() || writer.begins[0] != "<tool_call>") {
      writer.begins.push_back("Well. ");
      writer.begins.push_back(std::string(MarksOf(writer.format).front()));
    }
    Walker walker(writer, seed_);
    AnswerLimits limits = MustCall(/*several=*/false);
    limits.must_call = false;
    const std::string text = walker.Answer(limits);
    SCOPED_TRACE(absl::StrCat(writer.format.ToString(), ": ", text));
    const Reading reading = Read(writer, text);
    ASSERT_GE(reading.calls.size(), 1);
    ASSERT_TRUE(reading.all_are_whole);
    const Json arguments = Json::parse(reading.calls[0].arguments);
    EXPECT_EQ(reading.calls[0].name == "time"
                  ? WhyNotOfSchema({{"enum", {Json::object()}}}, arguments)
                  : WhyNotOfSchema(kWeather, arguments),
              "");
  }
}

}  // namespace
}  // namespace lockstep
