#include "frontend/openai/fields.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "frontend/generation/error_detail.h"
#include "tests/testing/http/parsed_request.h"

namespace lockstep::openai {
namespace {

using nlohmann::json;
using Parsed = ParsedForTest;

Parsed Parse(Endpoint endpoint, const json& request) {
  return ParseForTest(endpoint, request.dump());
}

constexpr Endpoint kEndpoints[] = {kChat, kCompletions, kTokenize, kDetokenize,
                                   kEmbeddings};

TEST(Fields, EachThatIsRefusedIsUnlessItAsksForNothing) {
  for (const Field& field : Fields()) {
    if (field.treatment != Treatment::kRefused) continue;
    for (const Endpoint endpoint : kEndpoints) {
      if ((field.endpoints & endpoint) == 0) continue;
      SCOPED_TRACE(absl::StrCat(field.name, " of ", endpoint));
      json request = LeastRequest(endpoint);
      request[field.name] = "anything";
      const absl::Status status = Parse(endpoint, request).status;
      EXPECT_EQ(
          status.message(),
          absl::StrCat(field.name, " is not supported: ", field.note, "."));
      EXPECT_EQ(FieldOf(status), field.name);
      EXPECT_EQ(ReasonOf(status), kUnsupportedParameter);
      request[field.name] = nullptr;
      EXPECT_TRUE(Parse(endpoint, request).status.ok());
      if (*field.neutral == '\0') continue;
      request[field.name] = json::parse(field.neutral);
      EXPECT_TRUE(Parse(endpoint, request).status.ok());
    }
  }
}

TEST(Fields, EachWithoutEffectHasNone) {
  for (const Field& field : Fields()) {
    if (field.treatment != Treatment::kWithoutEffect) continue;
    for (const Endpoint endpoint : {kChat, kCompletions, kEmbeddings}) {
      if ((field.endpoints & endpoint) == 0) continue;
      json request = LeastRequest(endpoint);
      const Parsed before = Parse(endpoint, request);
      request[field.name] = true;
      const Parsed after = Parse(endpoint, request);
      EXPECT_TRUE(after.status.ok()) << field.name;
      EXPECT_EQ(after.unknown, 0);
      EXPECT_EQ(after.spec.sampling.SerializeAsString(),
                before.spec.sampling.SerializeAsString());
    }
  }
}

TEST(Fields, OneThatNobodyKnowsIsAcceptedAndCounted) {
  for (const Endpoint endpoint : kEndpoints) {
    json request = LeastRequest(endpoint);
    request["invented"] = {{"by", "a client"}};
    const Parsed parsed = Parse(endpoint, request);
    EXPECT_TRUE(parsed.status.ok()) << parsed.status;
    EXPECT_EQ(parsed.unknown, 1);
  }
}

TEST(Fields, PromptsShareTheChoicesThatARequestMayHave) {
  json request = {{"n", 128}, {"prompt", std::vector<std::string>(32, "hi")}};
  EXPECT_TRUE(Parse(kCompletions, request).status.ok());
  request["prompt"].push_back("hi");
  const absl::Status status = Parse(kCompletions, request).status;
  EXPECT_EQ(status.message(),
            "n is 128; it must be at most 124 with 33 prompts.");
  EXPECT_EQ(FieldOf(status), "n");
  request["n"] = 124;
  EXPECT_TRUE(Parse(kCompletions, request).status.ok());
}

// Of each object of a request that has members of its own.
TEST(Fields, MembersThatNobodyKnowsAreCountedToo) {
  const json whole = {
      {"messages",
       {{{"role", "user"},
         {"content", json::array({{{"type", "text"}, {"text", "hi"}}})}},
        {{"role", "assistant"},
         {"tool_calls",
          json::array({{{"id", "c"},
                        {"type", "function"},
                        {"function", {{"name", "f"}, {"arguments", "{}"}}}}})}},
        {{"role", "tool"}, {"tool_call_id", "c"}, {"content", "1"}}}},
      {"stream", true},
      {"stream_options",
       {{"include_usage", true}, {"continuous_usage_stats", true}}},
      {"response_format",
       {{"type", "json_schema"},
        {"json_schema",
         {{"name", "x"},
          {"description", "d"},
          {"strict", true},
          {"schema", {{"type", "object"}}}}}}},
      {"tools", json::array({{{"type", "function"},
                              {"function",
                               {{"name", "f"},
                                {"description", "d"},
                                {"strict", false},
                                {"parameters", {{"type", "object"}}}}}}})},
      {"tool_choice", {{"type", "function"}, {"function", {{"name", "f"}}}}}};
  const auto parse = [](const json& request) {
    return ParseForTest(kChat, request.dump());
  };
  const Parsed known = parse(whole);
  EXPECT_TRUE(known.status.ok()) << known.status;
  EXPECT_EQ(known.unknown, 0);
  for (const char* at :
       {"/messages/0/content/0", "/messages/1/tool_calls/0",
        "/messages/1/tool_calls/0/function", "/stream_options",
        "/response_format", "/response_format/json_schema", "/tools/0",
        "/tools/0/function", "/tool_choice", "/tool_choice/function"}) {
    json request = whole;
    request[json::json_pointer(at)]["invented"] = 1;
    const Parsed parsed = parse(request);
    EXPECT_TRUE(parsed.status.ok()) << at << ": " << parsed.status;
    EXPECT_EQ(parsed.unknown, 1) << at;
  }
}

TEST(Fields, ThePageShowsTheTable) {
  std::ifstream file("docs/openai.md");
  const std::string page((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
  for (const Field& field : Fields()) {
    EXPECT_THAT(page, ::testing::HasSubstr(absl::StrCat("`", field.name, "`")));
    EXPECT_THAT(page, ::testing::HasSubstr(field.note)) << field.name;
  }
}

}  // namespace
}  // namespace lockstep::openai
