// API keys at both surfaces of a gateway: docs/security.md.

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/error_reason.h"
#include "common/grpc_status.h"
#include "frontend/access/open_routes.h"
#include "frontend/gateway.h"
#include "frontend/options.h"
#include "proto/inference.pb.h"
#include "tests/testing/fake_worker.h"
#include "tests/testing/gateway_test_fixture.h"
#include "tests/testing/http/openai_client.h"
#include "tests/testing/http/raw_connection.h"
#include "tests/testing/http/scraped.h"
#include "tests/testing/read_file.h"
#include "tests/testing/write_file.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Fetch;
using ::lockstep::testing::GatewayTest;
using ::lockstep::testing::Hang;
using ::lockstep::testing::OpenAiAnswer;
using ::lockstep::testing::Outcome;
using ::lockstep::testing::PostJson;
using ::lockstep::testing::RawConnection;
using ::lockstep::testing::RawResponse;
using ::lockstep::testing::ReadFile;
using ::lockstep::testing::TextRequest;
using ::nlohmann::json;

constexpr char kAlice[] = "alice-0123456789";
constexpr char kBob[] = "bob-0123456789ab";
constexpr char kCarol[] = "carol-0123456789";
constexpr char kOps[] = "ops-0123456789ab";

class GatewayAccessTest : public GatewayTest {
 protected:
  GatewayAccessTest()
      : GatewayTest([](GatewayOptions* options) {
          const std::string path = ::testing::TempDir() + "keys";
          ::lockstep::testing::WriteFile(
              path, absl::StrCat("alice ", kAlice, "\nbob ", kBob,
                                 " "
                                 "requests_per_minute=2\ncarol ",
                                 kCarol, " concurrent_requests=1\nops ", kOps,
                                 " may_drain\n"));
          options->security.api_keys_file = path;
          options->access_log = LogPath();
        }) {}

  static std::string LogPath() { return ::testing::TempDir() + "access.log"; }

  static std::string Field(const std::string& key) {
    return absl::StrCat("authorization: Bearer ", key, "\r\n");
  }

  OpenAiAnswer Complete(const std::string& fields) {
    return PostJson(http_port(), "/v1/completions", {{"prompt", "hi"}}, fields);
  }

  static void Authorize(grpc::ClientContext* context, const std::string& key) {
    context->AddMetadata("authorization", "Bearer " + key);
  }

  // Of a call of Generate that may be refused.
  absl::Status GenerateAs(const std::string& key) {
    return FromGrpc(
        Generate(TextRequest(), {{"authorization", "Bearer " + key}}).status);
  }
};

TEST_F(GatewayAccessTest, HttpAnswersThoseWithAKey) {
  EXPECT_EQ(Complete(Field(kAlice)).status, 200);
  const OpenAiAnswer refused = Complete("");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.json,
            (json{{"error",
                   {{"message",
                     "an API key is needed; send it as \"Authorization: "
                     "Bearer KEY\"."},
                    {"type", "authentication_error"},
                    {"param", nullptr},
                    {"code", "invalid_api_key"},
                    {"reason", "INVALID_API_KEY"}}}}));
  EXPECT_TRUE(absl::StrContains(refused.head, "\r\nwww-authenticate: bearer"));
  EXPECT_EQ(Complete(Field("not-a-key-at-all")).status, 401);
}

TEST_F(GatewayAccessTest, HttpRefusesBeforeItReadsTheBody) {
  RawConnection client(http_port());
  client.Send(
      "POST /v1/completions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n"
      "content-type: application/json\r\ncontent-length: 30000000\r\n\r\n");
  EXPECT_EQ(client.Read().status, 401);
}

TEST_F(GatewayAccessTest, HttpSaysWhenToTryAgain) {
  EXPECT_EQ(Complete(Field(kBob)).status, 200);
  EXPECT_EQ(Complete(Field(kBob)).status, 200);
  const OpenAiAnswer refused = Complete(Field(kBob));
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.json["error"]["code"], "rate_limit_exceeded");
  const size_t at = refused.head.find("\r\nretry-after: ");
  ASSERT_NE(at, std::string::npos) << refused.head;
  const int seconds = std::atoi(refused.head.c_str() + at + 15);
  EXPECT_GE(seconds, 1);
  EXPECT_LE(seconds, 30);
  EXPECT_EQ(Complete(Field(kAlice)).status, 200);
}

TEST_F(GatewayAccessTest, EveryRouteButTheOpenOnesNeedsAKey) {
  const std::string page = ReadFile("docs/security.md");
  for (const OpenRoute& route : OpenRoutes()) {
    EXPECT_EQ(Fetch(http_port(), std::string(route.path)).status, 200)
        << route.path;
    EXPECT_TRUE(absl::StrContains(
        page, absl::StrCat("| `", route.path, "` | open | ", route.why)))
        << route.path;
  }
  for (const char* path : {"/v1/models", "/v1/models/fake", "/version"}) {
    EXPECT_EQ(Fetch(http_port(), path).status, 401) << path;
    EXPECT_EQ(Fetch(http_port(), path, "", Field(kAlice)).status, 200) << path;
  }
  for (const char* path : {"/v1/chat/completions", "/v1/completions",
                           "/tokenize", "/detokenize"}) {
    EXPECT_EQ(Fetch(http_port(), path, "{}").status, 401) << path;
    EXPECT_EQ(Fetch(http_port(), path, "{}", Field(kAlice)).status, 400)
        << path;
  }
}

TEST_F(GatewayAccessTest, OnlyAKeyThatMayDrainsTheGateway) {
  const auto drain = [this](const std::string& fields) {
    RawConnection client(http_port());
    client.Send(absl::StrCat("POST /drain HTTP/1.1\r\nhost: x\r\n", fields,
                             "content-length: 0\r\n\r\n"));
    return client.Read();
  };
  EXPECT_EQ(drain("").status, 401);
  EXPECT_EQ(drain(Field("not-a-key-at-all")).status, 401);
  const RawResponse refused = drain(Field(kAlice));
  EXPECT_EQ(refused.status, 403);
  const json error = json::parse(refused.body)["error"];
  EXPECT_EQ(error["code"], "permission_denied");
  EXPECT_EQ(error["message"],
            "draining the gateway takes an API key that has may_drain in "
            "--api_keys_file.");
  EXPECT_FALSE(drain_asked_for_.HasBeenNotified());
  const RawResponse taken = drain(Field(kOps));
  EXPECT_EQ(taken.status, 202);
  EXPECT_EQ(json::parse(taken.body), (json{{"status", "draining"}}));
  if (taken.status == 202) drain_asked_for_.WaitForNotification();
}

TEST_F(GatewayAccessTest, GrpcAnswersThoseWithAKey) {
  EXPECT_TRUE(GenerateAs(kAlice).ok());
  const Outcome refused = Generate(TextRequest());
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(ErrorReasonOf(FromGrpc(refused.status)), "INVALID_API_KEY");
  EXPECT_EQ(GenerateAs("not-a-key-at-all").message(),
            "the API key is not valid.");
}

TEST_F(GatewayAccessTest, RefusedKeysAreCountedAndLeaveALineWithoutThem) {
  EXPECT_EQ(Complete(Field("a-guess-of-a-key")).status, 401);
  EXPECT_EQ(Complete("").status, 401);
  EXPECT_FALSE(GenerateAs("another-guess-of-one").ok());
  const auto scraped = [&](const std::string& name) {
    return testing::Scraped(metrics_.Text())[name];
  };
  EXPECT_EQ(scraped(R"(lockstep_gateway_refused_keys_total{cause="none"})"), 1);
  EXPECT_EQ(scraped(R"(lockstep_gateway_refused_keys_total{cause="unknown"})"),
            2);
  while (
      scraped(R"(lockstep_gateway_access_log_lines_total{result="written"})") <
      3) {
    sched_yield();
  }
  const std::string lines = ReadFile(LogPath());
  EXPECT_TRUE(absl::StrContains(lines, R"("http_status":401)"));
  EXPECT_TRUE(absl::StrContains(lines, R"("reason":"INVALID_API_KEY")"));
  EXPECT_FALSE(absl::StrContains(lines, "guess"));
}

TEST_F(GatewayAccessTest, GrpcNeedsAKeyForEveryCallButHealthAndReflection) {
  WaitForHealth(grpc::health::v1::HealthCheckResponse::SERVING);
  const auto codes = [&](const char* key) {
    grpc::ClientContext list, encode, decode;
    for (grpc::ClientContext* context : {&list, &encode, &decode}) {
      if (key != nullptr) Authorize(context, key);
    }
    v1::ListModelsResponse models;
    v1::TokenizeRequest text;
    text.set_text("hi");
    v1::TokenizeResponse encoded;
    v1::DetokenizeResponse decoded;
    return std::vector<grpc::StatusCode>{
        stub_->ListModels(&list, {}, &models).error_code(),
        stub_->Tokenize(&encode, text, &encoded).error_code(),
        stub_->Detokenize(&decode, {}, &decoded).error_code()};
  };
  EXPECT_EQ(codes(nullptr), std::vector<grpc::StatusCode>(
                                3, grpc::StatusCode::UNAUTHENTICATED));
  EXPECT_EQ(codes(kAlice),
            std::vector<grpc::StatusCode>(3, grpc::StatusCode::OK));
}

TEST_F(GatewayAccessTest, ARunningRequestCountsAtBothSurfacesUntilItEnds) {
  worker_.set_script(Hang);
  grpc::ClientContext context;
  Authorize(&context, kCarol);
  const auto stream = stub_->Generate(&context, TextRequest());
  v1::GenerateResponse message;
  ASSERT_TRUE(stream->Read(&message));
  const absl::Status refused = GenerateAs(kCarol);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrorReasonOf(refused), "KEY_LIMIT");
  EXPECT_EQ(RetryDelayOf(refused), absl::Seconds(1));
  EXPECT_EQ(Complete(Field(kCarol)).status, 429);
  context.TryCancel();
  stream->Finish();
  worker_.set_script(
      [](const auto& request) { return testing::Say(request, "ok"); });
  while (!GenerateAs(kCarol).ok()) continue;
  // Who has read an answer's end may ask again.
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Complete(Field(kCarol)).status, 200);
    EXPECT_TRUE(GenerateAs(kCarol).ok());
    EXPECT_EQ(
        Fetch(http_port(), "/tokenize", R"({"prompt":"a"})", Field(kCarol))
            .status,
        200);
  }
}

}  // namespace
}  // namespace lockstep
