// What keeps requests and connections out of the HTTP server.

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "frontend/http/server.h"
#include "tests/testing/http/raw_connection.h"
#include "tests/testing/http/server_test_fixture.h"

namespace lockstep::http {
namespace {

using ::lockstep::testing::Fetch;
using ::lockstep::testing::HttpServerTest;
using ::lockstep::testing::RawConnection;
using ::lockstep::testing::RawResponse;

constexpr char kPage[] = "https://app.example.org";

class ServerGuardTest : public HttpServerTest {
 protected:
  ServerGuardTest() {
    routes_.push_back({"POST", "/stream",
                       [](Request, Writer writer) {
                         writer->StartStream({}, "");
                         writer->Write("one");
                         writer->End(ResponseWriter::After::kKeepConnection);
                       },
                       "application/json"});
  }

  RawResponse Preflight(const std::string& origin) {
    RawConnection client(port());
    client.Send(
        absl::StrCat("OPTIONS /stream HTTP/1.1\r\nhost: x\r\norigin: ", origin,
                     "\r\naccess-control-request-method: POST\r\n"
                     "access-control-request-headers: authorization\r\n\r\n"));
    return client.Read();
  }
};

TEST_F(ServerGuardTest, TheGuardLooksAtHeadersOfRoutesAlone) {
  options_.guard = [](const Request& request) {
    return request.Find("x-pass") != nullptr ? Refusal()
                                             : Refusal{401, "no pass."};
  };
  Start();
  EXPECT_EQ(Fetch(port(), "/hello", "", "x-pass: 1\r\n").status, 200);
  EXPECT_EQ(Fetch(port(), "/nowhere").status, 404);
  EXPECT_EQ(Preflight(kPage).status, 204);
  RawConnection client(port());
  for (int i = 0; i < 2; ++i) {  // it may go on to one with a pass
    client.Send("GET /hello HTTP/1.1\r\nhost: x\r\n\r\n");
    const RawResponse refused = client.Read();
    EXPECT_EQ(refused.status, 401);
    EXPECT_EQ(refused.body, "no pass.");
    EXPECT_EQ(refused.Field("connection"), "keep-alive");
  }
  // Its body is not waited for.
  client.Send(
      "POST /stream HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n"
      "content-type: application/json\r\n\r\n");
  EXPECT_EQ(client.Read().status, 401);
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(ServerGuardTest, PagesOfAllowedOriginsMayAsk) {
  options_.allowed_origins = {kPage};
  Start();
  const RawResponse preflight = Preflight(kPage);
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.Field("access-control-allow-origin"), kPage);
  EXPECT_EQ(preflight.Field("access-control-allow-methods"), "post, options");
  EXPECT_EQ(preflight.Field("access-control-allow-headers"), "authorization");
  const std::string from = absl::StrCat("origin: ", kPage, "\r\n");
  for (const RawResponse& response :
       {Fetch(port(), "/hello", "", from), Fetch(port(), "/stream", "{}", from),
        Fetch(port(), "/nowhere", "", from)}) {
    EXPECT_EQ(response.Field("access-control-allow-origin"), kPage);
    EXPECT_EQ(response.Field("vary"), "origin");
  }
}

TEST_F(ServerGuardTest, OthersLearnNothing) {
  options_.allowed_origins = {kPage};
  Start();
  const RawResponse preflight = Preflight("https://other.example.org");
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.Field("access-control-allow-origin"), "");
  EXPECT_EQ(preflight.Field("access-control-allow-methods"), "");
}

TEST_F(ServerGuardTest, ByDefaultNoPageMayAsk) {
  Start();
  EXPECT_EQ(Preflight(kPage).Field("access-control-allow-origin"), "");
  EXPECT_EQ(Fetch(port(), "/hello", "", absl::StrCat("origin: ", kPage, "\r\n"))
                .Field("access-control-allow-origin"),
            "");
}

TEST_F(ServerGuardTest, ConnectionsFromOneAddressHaveABound) {
  options_.max_connections_per_address = 2;
  Start();
  RawConnection first(port());
  auto second = std::make_unique<RawConnection>(port());
  for (RawConnection* client : {&first, second.get()}) {
    client->Send("GET /hello HTTP/1.1\r\nhost: x\r\n\r\n");
    EXPECT_EQ(client->Read().status, 200);
  }
  EXPECT_EQ(RawConnection(port()).Read().status, 503);
  second = nullptr;
  while (Fetch(port(), "/hello").status != 200) continue;
}

}  // namespace
}  // namespace lockstep::http
