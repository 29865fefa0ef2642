#include "frontend/http/server.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "tests/testing/http/raw_connection.h"
#include "tests/testing/http/server_test_fixture.h"

namespace lockstep::http {
namespace {

using ::lockstep::testing::Fetch;
using ::lockstep::testing::HttpServerTest;
using ::lockstep::testing::RawConnection;
using ::lockstep::testing::RawResponse;
using std::chrono::milliseconds;

constexpr char kGet[] = "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n";

std::string Post(const std::string& fields, const std::string& body = "") {
  return absl::StrCat("POST /echo HTTP/1.1\r\nhost: x\r\n", fields, "\r\n",
                      body);
}

class ServerTest : public HttpServerTest {
 protected:
  ServerTest() { options_.limits.body_bytes = 1 << 20; }
};

TEST_F(ServerTest, AConnectionServesOneRequestAfterAnother) {
  Start();
  RawConnection client(port());
  for (int i = 0; i < 3; ++i) {
    client.Send(kGet);
    const RawResponse response = client.Read();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "hello");
    EXPECT_EQ(response.Field("connection"), "keep-alive");
    EXPECT_TRUE(absl::StartsWith(response.Field("x-request-id"), "req-"));
  }
  EXPECT_EQ(server_->connections(), 1);
}

TEST_F(ServerTest, RequestsSentAheadAreAnsweredInOrder) {
  Start();
  RawConnection client(port());
  std::string requests;
  for (int i = 0; i < 20; ++i) {
    const std::string body = absl::StrCat("body ", i);
    requests += Post(absl::StrCat("content-type: application/json\r\n"
                                  "content-length: ",
                                  body.size(), "\r\n"),
                     body);
  }
  client.Send(requests);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(client.Read().body, absl::StrCat("body ", i));
  }
}

TEST_F(ServerTest, EchoesTheRequestId) {
  Start();
  EXPECT_EQ(Fetch(port(), "/hello", "", "x-request-id: abc.1\r\n")
                .Field("x-request-id"),
            "abc.1");
  const RawResponse refused =
      Fetch(port(), "/hello", "", "x-request-id: a/b\r\n");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.body,
            "x-request-id has a character outside [A-Za-z0-9._-] at byte 1.");
  EXPECT_TRUE(absl::StartsWith(refused.Field("x-request-id"), "req-"));
}

bool IsSentence(const std::string& text) {
  return absl::EndsWith(text, ".") &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isprint(c); });
}

TEST_F(ServerTest, SaysWhyItDoesNotReadARequest) {
  Start();
  RawConnection client(port());
  client.Send("GET /hello HTTP/1.1\r\nhost: x\r\nexpect: foo\r\n\r\n");
  EXPECT_EQ(client.Read().body,
            "the only expectation known here is 100-continue.");
}

TEST_F(ServerTest, RefusesByTheHeaderAlone) {
  Start();
  const std::string kType = "content-type: application/json\r\n";
  const struct {
    std::string request;
    int status;
    std::string allow;
    bool stays;
  } kCases[] = {
      {"GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n", 404, "", true},
      {"DELETE /hello HTTP/1.1\r\nhost: x\r\n\r\n", 405, "get, head, options",
       true},
      {"OPTIONS /echo HTTP/1.1\r\nhost: x\r\n\r\n", 204, "post, options", true},
      {"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n", 204, "get, head, post, options",
       true},
      {"GET /hello HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n", 400, "",
       false},
      {Post(kType), 411, "", false},
      {Post("content-length: 2\r\n"), 415, "", false},
      {Post("content-type: text/plain\r\ncontent-length: 2\r\n"), 415, "",
       false},
      {Post(kType + "content-encoding: gzip\r\ncontent-length: 2\r\n"), 415, "",
       false},
      {Post(kType + "content-length: 1048577\r\n"), 413, "", false},
      {"GARBAGE\r\n\r\n", 400, "", false},
  };
  for (const auto& c : kCases) {
    RawConnection client(port());
    client.Send(c.request);
    const RawResponse response = client.Read();
    EXPECT_EQ(response.status, c.status) << c.request;
    EXPECT_EQ(response.Field("allow"), c.allow) << c.request;
    if (c.status >= 400) {
      EXPECT_TRUE(IsSentence(response.body)) << response.body;
    }
    EXPECT_EQ(response.Field("connection"), c.stays ? "keep-alive" : "close");
    if (c.stays) {
      client.Send(kGet);
      EXPECT_EQ(client.Read().status, 200) << c.request;
    } else {
      EXPECT_TRUE(client.IsClosed()) << c.request;
    }
  }
}

TEST_F(ServerTest, ARefusedClientReadsWhyThoughItSendsOn) {
  Start();
  RawConnection client(port());
  client.Send(Post("content-length: 500000\r\n", std::string(500'000, 'a')));
  EXPECT_EQ(client.Read().status, 415);
}

TEST_F(ServerTest, HeadIsGetWithoutItsBody) {
  Start();
  RawConnection client(port());
  client.Send("HEAD /hello HTTP/1.1\r\nhost: x\r\n\r\n");
  EXPECT_EQ(client.Read(/*is_head=*/true).Field("content-length"), "5");
  client.Send(kGet);
  EXPECT_EQ(client.Read().body, "hello");
}

TEST_F(ServerTest, ContinuesWhenItIsExpected) {
  Start();
  const std::string fields =
      "content-type: application/json\r\nexpect: 100-continue\r\n"
      "content-length: 2\r\n";
  RawConnection client(port());
  client.Send(Post(fields));
  EXPECT_EQ(client.Read().status, 100);
  client.Send("hi");
  EXPECT_EQ(client.Read().body, "hi");
  client.Send(
      absl::StrCat("POST /nowhere HTTP/1.1\r\nhost: x\r\n", fields, "\r\n"));
  EXPECT_EQ(client.Read().status, 404);  // and no body is asked for
}

TEST_F(ServerTest, ALargeBodyComesWhole) {
  Start();
  std::string body;
  for (int i = 0; body.size() < 1'000'000; ++i) absl::StrAppend(&body, i, ",");
  EXPECT_EQ(Fetch(port(), "/echo", body).body, body);
}

TEST_F(ServerTest, ASlowRequestIsToldThatItsTimeIsOver) {
  options_.timeouts.header = milliseconds(100);
  options_.timeouts.body = milliseconds(100);
  Start();
  RawConnection header(port()), body(port());
  header.Send("GET /hello HTT");
  EXPECT_EQ(header.Read().status, 408);
  EXPECT_TRUE(header.IsClosed());
  body.Send(
      Post("content-type: application/json\r\ncontent-length: 5\r\n", "hel"));
  EXPECT_EQ(body.Read().status, 408);
}

TEST_F(ServerTest, AnIdleConnectionIsClosedWithoutAWord) {
  options_.timeouts.idle = milliseconds(100);
  Start();
  EXPECT_TRUE(RawConnection(port()).IsClosed());
  RawConnection used(port());
  used.Send(kGet);
  EXPECT_EQ(used.Read().status, 200);
  EXPECT_TRUE(used.IsClosed());
}

TEST_F(ServerTest, AClientThatHangsUpIsNoticedAtOnce) {
  Start();
  auto client = std::make_unique<RawConnection>(port());
  client->Send("GET /held HTTP/1.1\r\nhost: x\r\n\r\n");
  const Writer writer = AwaitHeld();
  absl::Notification gone;
  writer->OnGone([&] { gone.Notify(); });
  client = nullptr;
  gone.WaitForNotification();
  writer->Send({200, {}, "nobody"});
}

TEST_F(ServerTest, StreamsAndKeepsTheStreamAlive) {
  options_.timeouts.keep_alive = milliseconds(50);
  Start();
  RawConnection client(port());
  client.Send("GET /held HTTP/1.1\r\nhost: x\r\n\r\n");
  const Writer writer = AwaitHeld();
  writer->StartStream({}, ": alive\n\n");
  writer->Write("one");
  client.ReadUntil(": alive\n\n\r\n9\r\n: alive");  // in silence, twice
  writer->Write("two");
  writer->End(ResponseWriter::After::kKeepConnection);
  const RawResponse response = client.Read();
  EXPECT_TRUE(response.is_chunked);
  EXPECT_TRUE(absl::StartsWith(response.body, "one: alive\n\n"));
  EXPECT_TRUE(absl::EndsWith(response.body, "two"));
  client.Send(kGet);
  EXPECT_EQ(client.Read().status, 200);
}

TEST_F(ServerTest, ReadersOfHttp10GetAStreamThatEndsWithTheConnection) {
  Start();
  RawConnection client(port());
  client.Send("GET /held HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
  const Writer writer = AwaitHeld();
  writer->StartStream({}, "");
  writer->Write("plain");
  writer->End(ResponseWriter::After::kKeepConnection);
  const RawResponse response = client.Read();
  EXPECT_FALSE(response.is_chunked);
  EXPECT_EQ(response.body, "plain");
}

// Writes as long as there is room; what a slow reader is sent is bounded.
struct Source : std::enable_shared_from_this<Source> {
  explicit Source(std::shared_ptr<ResponseWriter> to) : writer(std::move(to)) {}

  void Go() {
    const auto self = shared_from_this();
    writer->OnGone([self] { self->gone.Notify(); });
    Step();
  }
  // As deep as there are pieces in the buffer.
  void Step() {
    if (gone.HasBeenNotified()) return;
    written += kPiece;
    writer->Write(std::string(kPiece, 'a'));
    writer->AwaitRoom([self = shared_from_this()] { self->Step(); });
  }

  static constexpr size_t kPiece = 10'000;
  const std::shared_ptr<ResponseWriter> writer;
  std::atomic<size_t> written{0};
  absl::Notification gone;
};

TEST_F(ServerTest, ASlowReaderFailsAloneAndHoldsNoMoreThanItsBuffer) {
  options_.timeouts.write = milliseconds(300);
  Start();
  RawConnection slow(port(), /*receive_buffer_bytes=*/4096);
  slow.Send("GET /held HTTP/1.1\r\nhost: x\r\n\r\n");
  auto source = std::make_shared<Source>(AwaitHeld());
  source->writer->StartStream({}, "");
  source->Go();
  RawConnection other(port());
  other.Send(kGet);
  EXPECT_EQ(other.Read().status, 200);
  source->gone.WaitForNotification();
  // Ours, and the kernel's on both sides.
  EXPECT_LT(source->written.load(), 4 * kMaxBufferedBytes);
}

TEST_F(ServerTest, MoreConnectionsThanAllowedAreClosed) {
  options_.max_connections = 2;
  Start();
  RawConnection first(port()), second(port());
  first.Send(kGet);
  second.Send(kGet);
  EXPECT_EQ(first.Read().status, 200);
  EXPECT_EQ(second.Read().status, 200);
  EXPECT_EQ(RawConnection(port()).Read().status, 503);
}

TEST_F(ServerTest, BodiesThatAreReadHaveABoundTogether) {
  options_.max_body_bytes = 1000;
  Start();
  RawConnection client(port());
  for (int i = 0; i < 5; ++i) {  // what is read is given back
    client.Send(
        Post("content-type: application/json\r\n"
             "content-length: 900\r\n",
             std::string(900, 'a')));
    EXPECT_EQ(client.Read().status, 200);
  }
  EXPECT_EQ(Fetch(port(), "/echo", std::string(1001, 'a')).status, 503);
  EXPECT_EQ(Fetch(port(), "/echo", std::string(1000, 'a')).status, 200);
}

TEST_F(ServerTest, DrainEndsIdleConnectionsAndAnswersTheOthers) {
  Start();
  RawConnection idle(port()), busy(port());
  idle.Send(kGet);
  EXPECT_EQ(idle.Read().status, 200);
  busy.Send("GET /held HTTP/1.1\r\nhost: x\r\n\r\n");
  const Writer writer = AwaitHeld();
  server_->Drain();
  EXPECT_TRUE(idle.IsClosed());
  writer->Send({200, {}, "done"});
  EXPECT_EQ(busy.Read().body, "done");
  EXPECT_TRUE(busy.IsClosed());
  // Probes are still answered.
  EXPECT_EQ(Fetch(port(), "/hello").status, 200);
}

TEST_F(ServerTest, ShutdownClosesWhatDoesNotEnd) {
  Start();
  RawConnection client(port());
  client.Send("GET /held HTTP/1.1\r\nhost: x\r\n\r\n");
  const Writer writer = AwaitHeld();
  absl::Notification gone;
  writer->OnGone([&] { gone.Notify(); });
  server_->Shutdown(absl::Milliseconds(50));
  EXPECT_TRUE(gone.HasBeenNotified());
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(ServerTest, APortInUseIsOneSentence) {
  Start();
  options_.listen = absl::StrCat("127.0.0.1:", port());
  EXPECT_EQ(Server::Start(options_, {}).status(),
            absl::UnavailableError(
                absl::StrCat("cannot listen on ", options_.listen,
                             ": Address already in use; choose another with "
                             "--http_listen.")));
}

}  // namespace
}  // namespace lockstep::http
