#include "frontend/openai/fields.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

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
