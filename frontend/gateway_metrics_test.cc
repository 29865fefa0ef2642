#include "frontend/gateway_metrics.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/testing/fake_tokenizer.h"
#include "tests/testing/http/openai_test_fixture.h"
#include "tests/testing/http/scraped.h"
#include "tests/testing/read_file.h"
#include "tokenizer_service/caching/caching_tokenizer.h"

namespace lockstep {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::Pair;
using testing::ReadFile;
using testing::Scraped;

constexpr char kTraceId[] = "0af7651916cd43dd8448eb211c80319c";
constexpr char kTraceparent[] =
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

std::string LogPath() { return ::testing::TempDir() + "/gateway-access.log"; }

// The worker says "né!", four bytes and so four tokens, of each prompt.
class GatewayMetricsTest : public testing::OpenAiTest {
 protected:
  GatewayMetricsTest()
      : OpenAiTest(
            [](GatewayOptions* options) { options->access_log = LogPath(); }) {}
  ~GatewayMetricsTest() override { unlink(LogPath().c_str()); }

  // A request is counted when all have let go of it.
  void Await(const std::string& name, double value) {
    while (Scraped(metrics_.Text())[name] < value) sched_yield();
  }

  // One of each kind.
  void AskForThisAndThat() {
    EXPECT_EQ(Chat({{"colour", "green"}}).status, 200);
    EXPECT_EQ(Complete({{"prompt", {"a", "b"}}, {"stream", true}}).status, 200);
    EXPECT_EQ(Chat({{"n", 0}}).status, 400);
    EXPECT_EQ(Get("/nowhere").status, 404);
    EXPECT_EQ(Get("/v1/models/fake").status, 200);
    EXPECT_TRUE(Generate(testing::TextRequest()).status.ok());
    Await(R"(lockstep_gateway_access_log_lines_total{result="written"})", 6);
  }

  std::vector<json> Lines() {
    std::vector<json> lines;
    for (const absl::string_view line :
         absl::StrSplit(ReadFile(LogPath()), '\n', absl::SkipEmpty())) {
      lines.push_back(json::parse(line));
    }
    return lines;
  }
};

TEST(GatewayMetricsPage, HasTheTable) {
  EXPECT_THAT(ReadFile("docs/metrics.md"),
              HasSubstr(MetricsAsMarkdown(GatewayMetrics())));
}

TEST_F(GatewayMetricsTest, CountsWhatIsAskedAndAnswered) {
  AskForThisAndThat();
  const auto scraped = Scraped(Get("/metrics").body);
  EXPECT_THAT(
      scraped,
      IsSupersetOf(std::map<std::string, double>{
          {R"(lockstep_gateway_http_requests_total{route="/v1/chat/completions",code="200"})",
           1},
          {R"(lockstep_gateway_http_requests_total{route="/v1/chat/completions",code="400"})",
           1},
          {R"(lockstep_gateway_http_requests_total{route="/v1/completions",code="200"})",
           1},
          {R"(lockstep_gateway_http_requests_total{route="/v1/models/*",code="200"})",
           1},
          {R"(lockstep_gateway_http_requests_total{route="none",code="404"})",
           1},
          {R"(lockstep_gateway_grpc_requests_total{method="Generate",code="OK"})",
           1},
          {R"(lockstep_gateway_generations_total{code="OK"})", 4},
          {R"(lockstep_gateway_generations_total{code="INVALID_ARGUMENT"})", 1},
          {R"(lockstep_gateway_refused_requests_total{reason="INVALID_REQUEST"})",
           1},
          {"lockstep_gateway_open_streams", 0},
          {"lockstep_gateway_generation_tokens_total", 16},
          {"lockstep_gateway_cached_prompt_tokens_total", 4},
          {"lockstep_gateway_encode_seconds_count", 4},
          {"lockstep_gateway_time_to_first_token_seconds_count", 4},
          {"lockstep_gateway_inter_token_latency_seconds_count", 12},
          {"lockstep_gateway_request_latency_seconds_count", 5},
          {R"(lockstep_gateway_unknown_fields_total{field="colour"})", 1},
          {R"(lockstep_gateway_model_info{model_name="fake"})", 1},
          {"lockstep_gateway_failovers_total", 0},
      }));
  const std::string group = absl::StrCat("{group=\"", worker_.address(), "\"}");
  EXPECT_THAT(scraped,
              Contains(Pair("lockstep_gateway_group_ready" + group, 1)));
  EXPECT_THAT(
      scraped,
      Contains(Pair("lockstep_gateway_group_requests_total" + group, 4)));
  EXPECT_THAT(scraped, Contains(Pair(
                           "lockstep_gateway_group_breaker_state" + group, 0)));
}

TEST_F(GatewayMetricsTest, NoMetricIsWithoutAValue) {
  const CachingTokenizer cache(std::make_unique<FakeTokenizer>(), 1);
  const auto told = metrics_.Register(
      [&cache](MetricWriter& writer) { CollectTokenizerCache(cache, writer); });
  AskForThisAndThat();
  Await(R"(lockstep_gateway_event_loop_lag_seconds_count{thread="http-1"})", 1);
  Await(R"(lockstep_gateway_event_loop_lag_seconds_count{thread="grpc"})", 1);
  for (const auto& family : metrics_.Collect()) {
    if (!absl::StartsWith(family.name, "lockstep_gateway_")) continue;
    EXPECT_FALSE(family.metric.empty()) << family.name;
  }
}

TEST_F(GatewayMetricsTest, WritesALineARequestAndNotItsText) {
  AskForThisAndThat();
  EXPECT_EQ(Lines().size(), 6);
  json chat, grpc;
  for (const json& line : Lines()) {
    if (line["route"] == "/v1/chat/completions" && line["http_status"] == 200) {
      chat = line;
    }
    if (line["surface"] == "grpc") grpc = line;
    EXPECT_FALSE(line["request_id"].get<std::string>().empty()) << line;
    EXPECT_EQ(line["client"], "127.0.0.1") << line;
  }
  EXPECT_EQ(chat["model"], "fake");
  EXPECT_EQ(chat["status"], "OK");
  EXPECT_EQ(chat["finish"], json::array({"LENGTH"}));
  EXPECT_EQ(chat["completion_tokens"], 4);
  EXPECT_GE(chat["total_ms"], chat["first_token_ms"]);
  EXPECT_EQ(grpc["route"], "Generate");
  EXPECT_EQ(grpc["status"], "OK");
  EXPECT_THAT(ReadFile(LogPath()), Not(HasSubstr("n\\u00e9!")));
}

TEST_F(GatewayMetricsTest, ATraceGoesThroughToTheWorkerAndIntoTheLog) {
  EXPECT_EQ(testing::Fetch(http_port(), "/v1/completions", R"({"prompt":"a"})",
                           absl::StrCat("traceparent: ", kTraceparent,
                                        "\r\ntracestate: a=1\r\ntracestate: "
                                        "b=2\r\nx-request-id: mine\r\n"))
                .status,
            200);
  Await(R"(lockstep_gateway_access_log_lines_total{result="written"})", 1);
  const json line = Lines().at(0);
  EXPECT_EQ(line["trace_id"], kTraceId);
  EXPECT_EQ(line["request_id"], "mine");
  EXPECT_THAT(worker_.metadata(),
              IsSupersetOf(std::map<std::string, std::string>{
                  {"traceparent",
                   absl::StrCat("00-", kTraceId, "-",
                                line["span_id"].get<std::string>(), "-01")},
                  {"tracestate", "a=1,b=2"},
                  {"x-request-id", "mine"}}));
}

TEST_F(GatewayMetricsTest, ATraceGoesThroughFromGrpc) {
  EXPECT_TRUE(Generate(testing::TextRequest(), {{"traceparent", kTraceparent},
                                                {"x-request-id", "mine"}})
                  .status.ok());
  Await(R"(lockstep_gateway_access_log_lines_total{result="written"})", 1);
  EXPECT_EQ(Lines().at(0)["trace_id"], kTraceId);
  EXPECT_EQ(Lines().at(0)["request_id"], "mine");
  EXPECT_THAT(worker_.metadata(), Contains(Pair("x-request-id", "mine")));
  EXPECT_THAT(worker_.metadata()["traceparent"], HasSubstr(kTraceId));
}

TEST_F(GatewayMetricsTest, AMalformedTraceIsReplaced) {
  EXPECT_EQ(testing::Fetch(http_port(), "/v1/completions", R"({"prompt":"a"})",
                           "traceparent: 00-12-34-01\r\ntracestate: a=1\r\n")
                .status,
            200);
  EXPECT_THAT(worker_.metadata()["traceparent"],
              MatchesRegex("00-[0-9a-f]{32}-[0-9a-f]{16}-00"));
  EXPECT_EQ(worker_.metadata().count("tracestate"), 0);
}

TEST_F(GatewayMetricsTest, ARequestIdThatIsNoneIsRefused) {
  const testing::Outcome refused =
      Generate(testing::TextRequest(), {{"x-request-id", "a b"}});
  EXPECT_TRUE(refused.messages.empty());
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.status.error_message(), HasSubstr("x-request-id"));
}

}  // namespace
}  // namespace lockstep
