// Each field of embeddings that the table calls honoured is.

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "frontend/generation/error_detail.h"
#include "frontend/openai/fields.h"
#include "tests/testing/http/parsed_request.h"

namespace lockstep::openai {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Parsed = ParsedForTest;

Parsed Parse(const json& changes) {
  json request = LeastRequest(kEmbeddings);
  request.update(changes);
  return ParseForTest(kEmbeddings, request.dump());
}

struct Honoured {
  const char* name;
  json value;
  std::function<void(const Parsed&)> check;
};

const PromptSpec& InputOf(const Parsed& parsed, size_t index = 0) {
  return parsed.embeddings.spec.inputs.at(index);
}
std::string TextOf(const Parsed& parsed, size_t index = 0) {
  return std::get<TextPrompt>(InputOf(parsed, index).prompt).text;
}
std::vector<uint32_t> IdsOf(const Parsed& parsed, size_t index = 0) {
  return std::get<TokenPrompt>(InputOf(parsed, index).prompt).ids;
}

std::vector<Honoured> HonouredFields() {
  return {
      {"model", "tiny",
       [](const Parsed& p) { EXPECT_EQ(p.embeddings.style.model, "tiny"); }},
      {"input", "ho",
       [](const Parsed& p) {
         EXPECT_EQ(TextOf(p), "ho");
         EXPECT_TRUE(InputOf(p).add_special_tokens);
       }},
      {"input",
       {"a", "b"},
       [](const Parsed& p) {
         EXPECT_EQ(TextOf(p, 0), "a");
         EXPECT_EQ(TextOf(p, 1), "b");
       }},
      {"input",
       {7, 8},
       [](const Parsed& p) { EXPECT_THAT(IdsOf(p), ElementsAre(7, 8)); }},
      {"input", json::parse("[[7, 8], [9], \"a\"]"),
       [](const Parsed& p) {
         EXPECT_THAT(IdsOf(p, 0), ElementsAre(7, 8));
         EXPECT_THAT(IdsOf(p, 1), ElementsAre(9));
         EXPECT_EQ(TextOf(p, 2), "a");
       }},
      {"encoding_format", "float",
       [](const Parsed& p) { EXPECT_FALSE(p.embeddings.style.as_base64); }},
      {"encoding_format", "base64",
       [](const Parsed& p) { EXPECT_TRUE(p.embeddings.style.as_base64); }},
      {"dimensions", 3,
       [](const Parsed& p) { EXPECT_EQ(p.spec.embedding->dimensions(), 3); }},
      {"pooling", "mean",
       [](const Parsed& p) {
         EXPECT_EQ(p.spec.embedding->pooling(), v1::MEAN);
       }},
      {"pooling", "last_token",
       [](const Parsed& p) {
         EXPECT_EQ(p.spec.embedding->pooling(), v1::LAST_TOKEN);
       }},
      {"normalize", false,
       [](const Parsed& p) {
         EXPECT_TRUE(p.spec.embedding->has_normalize());
         EXPECT_FALSE(p.spec.embedding->normalize());
       }},
      {"truncate_prompt_tokens", 5,
       [](const Parsed& p) { EXPECT_EQ(p.spec.truncation, 5); }},
      {"truncate_prompt_tokens", -1,
       [](const Parsed& p) { EXPECT_EQ(p.spec.truncation, 1000); }},
      {"add_special_tokens", false,
       [](const Parsed& p) { EXPECT_FALSE(InputOf(p).add_special_tokens); }},
      {"priority", 7, [](const Parsed& p) { EXPECT_EQ(p.spec.priority, 7); }},
      {"request_id", "mine",
       [](const Parsed& p) { EXPECT_EQ(p.spec.request_id, "mine"); }},
  };
}

TEST(EmbeddingsFields, EachThatIsHonouredIs) {
  std::set<std::string> seen;
  for (const Honoured& c : HonouredFields()) {
    SCOPED_TRACE(absl::StrCat(c.name, " = ", c.value.dump()));
    const Parsed parsed = Parse({{c.name, c.value}});
    ASSERT_TRUE(parsed.status.ok()) << parsed.status;
    EXPECT_EQ(parsed.unknown, 0);
    c.check(parsed);
    seen.insert(c.name);
    const absl::Status refused =
        Parse({{c.name, json::object({{"of no such", "type"}})}}).status;
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_EQ(FieldOf(refused), c.name) << refused;
  }
  for (const Field& field : Fields()) {
    if ((field.endpoints & kEmbeddings) == 0) continue;
    EXPECT_EQ(seen.count(field.name) == 1,
              field.treatment == Treatment::kHonoured)
        << field.name;
  }
}

TEST(EmbeddingsFields, WhatIsLeftOutIsTheModels) {
  const Parsed parsed = Parse(json::object());
  EXPECT_EQ(parsed.spec.embedding->ByteSizeLong(), 0);
  EXPECT_FALSE(parsed.spec.truncation.has_value());
  EXPECT_FALSE(parsed.embeddings.style.as_base64);
  EXPECT_THAT(parsed.spec.worker_request_id, StartsWith("embd-"));
}

struct Wrong {
  const char* changes;
  const char* message;
};

TEST(EmbeddingsFields, WhatIsWrongIsSaidOfTheVeryElement) {
  const Wrong cases[] = {
      {R"({"input": []})", "input is empty; an input needs at least one id."},
      {R"({"input": ""})", "input is empty; "},
      {R"({"input": ["a", ""]})", "input[1] is empty; "},
      {R"({"input": ["a", []]})",
       "input[1] is empty; an input needs at least one id."},
      {R"({"input": ["a", 7]})",
       "input[1] is 7; it must be a string or a list of token ids."},
      {R"({"input": [[1, 300]]})",
       "input[0][1] is 300; it must be below the vocabulary size 300."},
      {R"({"input": null})",
       "input is null; it must be a string, a list of token ids, or a list of "
       "either."},
      {R"({"encoding_format": "hex"})",
       "encoding_format is \"hex\"; it must be float or base64."},
      {R"({"pooling": "cls"})",
       "pooling is \"cls\"; it must be last_token or mean."},
      {R"({"dimensions": 0})", "dimensions is 0; it must be "},
      {R"({"truncate_prompt_tokens": 0})",
       "truncate_prompt_tokens is 0; it must be from 1 to the context of "
       "tiny, 1000 tokens."},
      {R"({"truncate_prompt_tokens": 1001})",
       "truncate_prompt_tokens is 1001; it must be from 1 to "},
      {R"({"truncate_prompt_tokens": -2})",
       "truncate_prompt_tokens is -2; it must be "},
      {R"({"messages": []})",
       "messages is not supported: texts are embedded, not chats."},
      {R"({"model": "other"})", "the model \"other\" is not served here"},
  };
  for (const Wrong& c : cases) {
    EXPECT_THAT(std::string(Parse(json::parse(c.changes)).status.message()),
                StartsWith(c.message));
  }
}

TEST(EmbeddingsFields, InputsAreBoundedInNumberAndLength) {
  json inputs = json::array();
  for (size_t i = 0; i < 2048; ++i) inputs.push_back("a");
  EXPECT_TRUE(Parse({{"input", inputs}}).status.ok());
  inputs.push_back("a");
  EXPECT_EQ(Parse({{"input", inputs}}).status.message(),
            "input holds 2049 inputs; at most 2048 are allowed.");

  const json ids = std::vector<int>(1001, 1);
  const absl::Status too_long = Parse({{"input", ids}}).status;
  EXPECT_THAT(std::string(too_long.message()),
              HasSubstr("holds 1001 ids; at most 1000 fit the context"));
  EXPECT_EQ(ReasonOf(too_long), kContextLengthExceeded);
  EXPECT_TRUE(
      Parse({{"input", ids}, {"truncate_prompt_tokens", 9}}).status.ok());
}

TEST(EmbeddingsFields, AModelWithoutEmbeddingsSaysWhy) {
  UnknownFields unknown;
  RequestContext context;
  context.model = {"tiny", 1000, 300};
  context.model.no_embedding = "it has a module of type Dense.";
  context.unknown_fields = &unknown;
  const absl::Status status =
      ParseEmbeddingsRequest(R"({"input": "hi"})", context).status();
  EXPECT_EQ(status, absl::UnimplementedError(
                        "embeddings are not supported: it has a module of "
                        "type Dense."));
}

}  // namespace
}  // namespace lockstep::openai
