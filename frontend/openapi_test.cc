// docs/openapi.json says what this server does.

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "frontend/openai/fields.h"
#include "frontend/openai/service.h"
#include "frontend/openapi/document.h"
#include "tests/testing/http/openai_test_fixture.h"
#include "tests/testing/http/parsed_request.h"

namespace lockstep {
namespace {

using nlohmann::json;
using openai::Endpoint;
using openai::Field;
using openai::Treatment;
using testing::OpenAiTest;
using testing::RawResponse;

constexpr struct {
  Endpoint endpoint;
  const char* schema;
} kRequests[] = {
    {openai::kChat, "ChatRequest"},
    {openai::kCompletions, "CompletionRequest"},
    {openai::kTokenize, "TokenizeRequest"},
    {openai::kDetokenize, "DetokenizeRequest"},
    {openai::kEmbeddings, "EmbeddingsRequest"},
};

json Document() { return json::parse(std::string(OpenApiDocument())); }

json PropertiesOf(const char* schema) {
  return Document()["components"]["schemas"][schema]["properties"];
}

// What the document says of a field, from the table.
std::string TreatmentOf(const Field& field) {
  switch (field.treatment) {
    case Treatment::kHonoured:
      return "";
    case Treatment::kWithoutEffect:
      return "without effect";
    case Treatment::kRefused:
      break;
  }
  return "refused";
}

// A number beyond a bound of the schema; null where it has none there.
json Below(const json& schema) {
  if (schema.contains("exclusiveMinimum")) return schema["exclusiveMinimum"];
  if (!schema.contains("minimum")) return nullptr;
  return schema["minimum"].get<double>() - 1;
}
json Above(const json& schema) {
  if (!schema.contains("maximum")) return nullptr;
  return schema["maximum"].get<double>() + 1;
}

TEST(OpenApi, HasTheFieldsOfTheTablesAndNoOther) {
  for (const auto& [endpoint, schema] : kRequests) {
    SCOPED_TRACE(schema);
    std::set<std::string> shown;
    const json properties = PropertiesOf(schema);
    for (const auto& [name, property] : properties.items()) {
      shown.insert(name);
      const Field* field = openai::FindField(name, endpoint);
      ASSERT_NE(field, nullptr) << name;
      EXPECT_EQ(property.value("x-lockstep", ""), TreatmentOf(*field)) << name;
      EXPECT_EQ(property["description"], field->note) << name;
      if (field->treatment != Treatment::kRefused) continue;
      json taken = {nullptr};
      if (*field->neutral != '\0') taken.push_back(json::parse(field->neutral));
      EXPECT_EQ(property["enum"], taken) << name;
    }
    for (const Field& field : openai::Fields()) {
      if ((field.endpoints & endpoint) == 0) continue;
      EXPECT_EQ(shown.count(field.name), 1) << field.name;
    }
  }
}

// Those that the gateway checks itself; others are the worker's to refuse.
TEST(OpenApi, BoundsOfIntegersAreAsTheParserHasThem) {
  for (const auto& [endpoint, schema] : kRequests) {
    const json properties = PropertiesOf(schema);
    for (const auto& [name, property] : properties.items()) {
      const json type = property.value("type", json());
      if (type != json({"integer", "null"}) || name == "seed") continue;
      json request = openai::LeastRequest(endpoint);
      for (const json& value : {Below(property), Above(property)}) {
        if (value.is_null()) continue;
        request[name] = value;
        EXPECT_FALSE(openai::ParseForTest(endpoint, request.dump()).status.ok())
            << schema << " takes " << name << " = " << value;
      }
      request[name] = property["maximum"];
      if (name == "top_logprobs") request["logprobs"] = true;
      const auto parsed = openai::ParseForTest(endpoint, request.dump());
      EXPECT_TRUE(parsed.status.ok()) << schema << ": " << parsed.status;
    }
  }
}

TEST(OpenApi, HasTheRoutesAndNoOther) {
  openai::Service service(nullptr, nullptr, nullptr, nullptr);
  const json paths = Document()["paths"];
  std::set<std::string> served, shown;
  for (const http::Route& route : service.Routes()) {
    served.insert(absl::StrCat(
        route.method, " ", absl::StrReplaceAll(route.path, {{"*", "{model}"}})));
  }
  for (const auto& [path, methods] : paths.items()) {
    for (const auto& [method, operation] : methods.items()) {
      shown.insert(absl::StrCat(absl::AsciiStrToUpper(method), " ", path));
    }
  }
  EXPECT_EQ(shown, served);
}

TEST_F(OpenAiTest, TheDocumentIsServedAsItIs) {
  std::ifstream file("docs/openapi.json");
  const json page = json::parse(std::string{std::istreambuf_iterator<char>(file), {}});
  const RawResponse response = Get("/openapi.json");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.Field("content-type"), "application/json");
  EXPECT_EQ(json::parse(response.body), page);
  EXPECT_EQ(json::parse(Get("/version").body)["version"], page["info"]["version"]);
}

}  // namespace
}  // namespace lockstep
