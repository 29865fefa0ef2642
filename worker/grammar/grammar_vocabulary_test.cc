#include "worker/grammar/grammar_vocabulary.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/testing/grammar/tiny_token_bytes.h"

namespace lockstep {
namespace {

using ::lockstep::testing::kTinyEos;
using ::lockstep::testing::MakeTinyTokenBytes;
using ::lockstep::testing::TinyIds;
using ::testing::AllOf;
using ::testing::HasSubstr;

// More ids than tokens, as models have.
constexpr size_t kVocabSize = 521;

v1::Grammar Json(const std::string& schema) {
  v1::Grammar grammar;
  grammar.set_json_schema(schema);
  return grammar;
}

v1::Grammar Regex(const std::string& regex) {
  v1::Grammar grammar;
  grammar.set_regex(regex);
  return grammar;
}

v1::Grammar Lark(const std::string& lark) {
  v1::Grammar grammar;
  grammar.set_lark(lark);
  return grammar;
}

class GrammarVocabularyTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    vocabulary_ = GrammarVocabulary::Create(MakeTinyTokenBytes(), kVocabSize,
                                            {kTinyEos, 100'000})
                      .value()
                      .release();
  }

  static GrammarMatcher Compile(const v1::Grammar& grammar) {
    return vocabulary_->Compile(grammar).value();
  }

  static std::vector<uint32_t> Mask(GrammarMatcher& matcher) {
    std::vector<uint32_t> mask(NumMaskWords(kVocabSize));
    const absl::Status filled = matcher.FillMask(absl::MakeSpan(mask));
    EXPECT_TRUE(filled.ok()) << filled;
    return mask;
  }

  static bool Allows(GrammarMatcher& matcher, uint32_t id) {
    return (Mask(matcher)[id / 32] >> (id % 32) & 1) != 0;
  }

  // Whether the grammar takes all of `text`, and that as a whole answer.
  static std::string Takes(const v1::Grammar& grammar,
                           const std::string& text) {
    GrammarMatcher matcher = Compile(grammar);
    const auto consumed = matcher.Consume(TinyIds(text));
    if (!consumed.ok()) return std::string(consumed.status().message());
    if (*consumed < text.size()) return absl::StrCat("up to ", *consumed);
    return *matcher.IsAccepting() ? "whole" : "part";
  }

  static absl::Status Refusal(const v1::Grammar& grammar) {
    return vocabulary_->Compile(grammar).status();
  }

  static GrammarVocabulary* vocabulary_;
};

GrammarVocabulary* GrammarVocabularyTest::vocabulary_ = nullptr;

TEST_F(GrammarVocabularyTest, TakesWhatTheSchemaSays) {
  const v1::Grammar grammar = Json(R"({
      "type": "object",
      "properties": {"name": {"type": "string", "maxLength": 5},
                     "age": {"type": "integer", "minimum": 0},
                     "kind": {"enum": ["cat", "dog"]}},
      "required": ["name"], "additionalProperties": false})");
  struct {
    const char* text;
    const char* taken;
  } rows[] = {
      {R"({"name":"Ann"})", "whole"},
      {R"({"name": "Ann", "age": 31, "kind": "cat"})", "whole"},
      {"{\n  \"name\": \"é\"\n}", "whole"},
      {R"({"name":"Ann")", "part"},
      {R"({"age")", "up to 2"},
      {R"({"name":"Annabel")", "up to 14"},
      {R"({"name":"Ann","age":-1})", "up to 20"},
      {R"({"name":"Ann","x":1})", "up to 15"},
      {R"( {"name":"Ann"})", "up to 0"},
      {R"({  "name":"Ann"})", "up to 2"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Takes(grammar, row.text), row.taken) << row.text;
  }
}

TEST_F(GrammarVocabularyTest, WhiteSpaceHasAnEnd) {
  const v1::Grammar grammar = Json(R"({"type": "array"})");
  EXPECT_EQ(Takes(grammar, "[\n" + std::string(32, ' ') + "1]"), "whole");
  EXPECT_EQ(Takes(grammar, "[\n" + std::string(33, ' ')), "up to 34");
  EXPECT_EQ(Takes(grammar, "[\n\n"), "up to 2");
}

TEST_F(GrammarVocabularyTest, TakesRegexes) {
  EXPECT_EQ(Takes(Regex("[0-9]{3}-[0-9]{4}"), "555-1234"), "whole");
  EXPECT_EQ(Takes(Regex("[0-9]{3}-[0-9]{4}"), "555-12"), "part");
  EXPECT_EQ(Takes(Regex("[0-9]{3}-[0-9]{4}"), "x"), "up to 0");
  EXPECT_EQ(Takes(Regex("^yes|no$"), "no"), "whole");
  EXPECT_EQ(Takes(Regex("a/b\n\\$"), "a/b\n$"), "whole");
}

TEST_F(GrammarVocabularyTest, TakesLark) {
  const v1::Grammar grammar = Lark(R"(
start: "let " NAME " = " expr
expr: NUMBER | expr "+" NUMBER
NAME: /[a-z]+/
NUMBER: /[0-9]+/
)");
  EXPECT_EQ(Takes(grammar, "let x = 1+22"), "whole");
  EXPECT_EQ(Takes(grammar, "let x = 1+"), "part");
  EXPECT_EQ(Takes(grammar, "let 1"), "up to 4");
  // None of these is a rule's.
  EXPECT_EQ(Takes(Lark("start: \"temperature=\" /temperature=./ "
                       "// temperature=1"),
                  "temperature=temperature=1"),
            "whole");
}

TEST_F(GrammarVocabularyTest, OnlyAWholeAnswerMayEnd) {
  GrammarMatcher matcher = Compile(Regex("ab?"));
  EXPECT_FALSE(Allows(matcher, kTinyEos));
  EXPECT_TRUE(Allows(matcher, TinyIds("a")[0]));
  EXPECT_EQ(*matcher.Consume(TinyIds("a")), 1);
  EXPECT_TRUE(Allows(matcher, kTinyEos));
  EXPECT_TRUE(Allows(matcher, TinyIds("b")[0]));
  EXPECT_EQ(*matcher.Consume(TinyIds("b")), 1);
  // Nothing but the end is left.
  std::vector<uint32_t> end(NumMaskWords(kVocabSize));
  end[kTinyEos / 32] = 1u << (kTinyEos % 32);
  EXPECT_EQ(Mask(matcher), end);
  EXPECT_EQ(*matcher.Consume(TinyIds("b")), 0);
}

TEST_F(GrammarVocabularyTest, NoTextHasASpecialToken) {
  GrammarMatcher matcher = Compile(Regex("(?s:.*)"));
  EXPECT_TRUE(Allows(matcher, kTinyEos));  // the empty text is whole
  EXPECT_FALSE(Allows(matcher, 0));
  EXPECT_FALSE(Allows(matcher, 1));
  EXPECT_FALSE(Allows(matcher, 3 + 0xff));        // no UTF-8
  EXPECT_FALSE(Allows(matcher, kVocabSize - 1));  // no token
  EXPECT_TRUE(Allows(matcher, TinyIds("x")[0]));
}

TEST_F(GrammarVocabularyTest, ANumberNamesASpecialToken) {
  GrammarMatcher matcher = Compile(Lark("start: \"a\" <[1]> \"b\""));
  EXPECT_EQ(*matcher.Consume(TinyIds("a")), 1);
  EXPECT_TRUE(Allows(matcher, 1));
  EXPECT_FALSE(Allows(matcher, 0));
  EXPECT_EQ(*matcher.Consume({1}), 1);
  EXPECT_TRUE(Allows(matcher, TinyIds("b")[0]));
}

TEST_F(GrammarVocabularyTest, AMatcherIsAFunctionOfItsIds) {
  const GrammarMatcher compiled = Compile(Json("{}"));
  const std::string text = R"({"a": [1, true, "x"]})";
  // Masks on the way, and what another does, change nothing.
  GrammarMatcher watched = *compiled.Clone(), other = *compiled.Clone();
  for (const uint32_t id : TinyIds(text)) {
    EXPECT_TRUE(Allows(watched, id));
    EXPECT_EQ(*watched.Consume({id}), 1);
    EXPECT_LE(*other.Clone()->Consume(TinyIds("[")), 1);
  }
  GrammarMatcher replayed = *compiled.Clone();
  EXPECT_EQ(*replayed.Consume(TinyIds(text)), text.size());
  EXPECT_EQ(Mask(replayed), Mask(watched));
  GrammarMatcher fork = *watched.Clone();
  EXPECT_EQ(Mask(fork), Mask(watched));
}

TEST_F(GrammarVocabularyTest, RefusesWhatIsBadAndSaysWhy) {
  struct {
    v1::Grammar grammar;
    std::vector<const char*> words;
  } rows[] = {
      {v1::Grammar(), {"grammar is empty", "json_schema"}},
      {Json(""), {"grammar.json_schema is refused", "no JSON"}},
      {Json("{\"type\":"), {"no JSON", "line 1"}},
      {Json("[]"), {"a schema is a JSON object"}},
      {Json("7"), {"a schema is a JSON object"}},
      {Json("false"), {"a schema is a JSON object"}},
      {Json(R"({"type": "strin"})"), {"strin"}},
      {Json(R"({"type": 5})"), {"type"}},
      {Json(R"({"enum": []})"), {"nsatisfiable"}},
      {Json(R"({"$ref": "#/$defs/none"})"), {"none"}},
      {Json(R"({"$ref": "https://example.com/x"})"), {"example.com"}},
      {Json(R"({"type": "string", "pattern": "("})"), {"regex"}},
      {Json(R"({"type": "string", "format": "zip"})"), {"zip"}},
      {Json(R"({"not": {"type": "string"}})"), {"not"}},
      {Json(R"({"if": {}, "then": {}})"), {"if"}},
      {Json(R"({"type": "array", "uniqueItems": true})"), {"uniqueItems"}},
      {Json(R"({"type": "integer", "minimum": 3, "maximum": 2})"), {"3"}},
      {Json(R"({"type": "object", "properties": 5})"), {"properties"}},
      {Regex("("), {"grammar.regex is refused", "unclosed group"}},
      {Regex("[z-a]"), {"invalid"}},
      {Regex("(?=x)"), {"look"}},
      {Regex("a{2,1}"), {"repetition"}},
      {Lark(""), {"grammar.lark is refused", "start"}},
      {Lark("start: nothing"), {"nothing"}},
      {Lark("start: \"a"), {"1"}},
      {Lark("begin: \"a\""), {"start"}},
      {Lark("start: <|nobody|>"), {"nobody"}},
      {Lark("start: start"), {""}},
      {Lark("start[temperature=0.5]: \"a\""), {"temperature is not supported"}},
      {Lark("start: x\nx[lazy, temperature = 1]: /a+/"), {"temperature"}},
      {Lark("start: %json {\"type\": \"strin\"}"), {"strin"}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.grammar.ShortDebugString());
    const absl::Status refusal = Refusal(row.grammar);
    EXPECT_EQ(refusal.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_LT(refusal.message().size(), 600);
    for (const char* word : row.words) {
      EXPECT_THAT(refusal.message(), HasSubstr(word));
    }
  }
}

TEST_F(GrammarVocabularyTest, RefusesWhatIsTooLarge) {
  EXPECT_THAT(Refusal(Regex(std::string(kMaxGrammarBytes + 1, 'a'))).message(),
              AllOf(HasSubstr("grammar.regex is 524289 bytes"),
                    HasSubstr("524288 are allowed")));
  const std::string deep(2000, '(');
  EXPECT_THAT(Refusal(Regex(deep)).message(), HasSubstr("nest deeper"));
  EXPECT_THAT(Refusal(Lark("start: " + deep)).message(),
              HasSubstr("nest deeper"));
  EXPECT_THAT(Refusal(Lark(std::string(5000, '\n'))).message(),
              HasSubstr("5000 lines"));
}

// Definitions that each need the next: as deep as they may be.
TEST_F(GrammarVocabularyTest, FollowsDefinitionsAsDeepAsTheyGo) {
  constexpr int kDepth = 4000;
  std::string tokens = "start: T0\n", rules = "start: r0\n";
  for (int i = 0; i < kDepth; ++i) {
    absl::StrAppend(&tokens, "T", i, ": \"a\" T", i + 1, "\n");
    absl::StrAppend(&rules, "r", i, ": \"a\" r", i + 1, "\n");
  }
  absl::StrAppend(&tokens, "T", kDepth, ": \"b\"\n");
  absl::StrAppend(&rules, "r", kDepth, ": \"b\"\n");
  // Whether it is too large or not, it is an answer.
  vocabulary_->Compile(Lark(tokens)).IgnoreError();
  vocabulary_->Compile(Lark(rules)).IgnoreError();
  const std::string nested =
      std::string(500, '(') + "a" + std::string(500, ')');
  Refusal(Regex(nested)).IgnoreError();
  Refusal(Lark("start: " + nested)).IgnoreError();
  // Repetitions of repetitions are small all the same.
  Refusal(Regex("((((a{1000}){1000}){1000}){1000}){1000}b*c")).IgnoreError();
}

TEST(GrammarVocabulary, NeedsAnEnd) {
  const auto vocabulary =
      GrammarVocabulary::Create(MakeTinyTokenBytes(), 512, {});
  EXPECT_EQ(vocabulary.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(vocabulary.status().message(), HasSubstr("end-of-text"));
}

// What ends an answer is no text of one, even where the tokenizer says so.
TEST(GrammarVocabulary, AnEndIsNoText) {
  TokenBytes tokens = MakeTinyTokenBytes();
  const uint32_t end = TinyIds("e")[0];
  const auto vocabulary =
      *GrammarVocabulary::Create(tokens, 512, {kTinyEos, end});
  GrammarMatcher matcher = *vocabulary->Compile(Regex("[a-z]+"));
  std::vector<uint32_t> mask(NumMaskWords(512));
  ASSERT_TRUE(matcher.FillMask(absl::MakeSpan(mask)).ok());
  EXPECT_EQ(mask[end / 32] >> (end % 32) & 1, 0);
  EXPECT_EQ(*matcher.Consume(TinyIds("a")), 1);
  ASSERT_TRUE(matcher.FillMask(absl::MakeSpan(mask)).ok());
  EXPECT_EQ(mask[end / 32] >> (end % 32) & 1, 1);
}

}  // namespace
}  // namespace lockstep
