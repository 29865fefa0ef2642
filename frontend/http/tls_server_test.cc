// The HTTP server over TLS: real handshakes, with certificates made here.

#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "common/security/tls_identity.h"
#include "frontend/http/server.h"
#include "tests/testing/http/raw_connection.h"
#include "tests/testing/http/server_test_fixture.h"
#include "tests/testing/tls/test_ca.h"
#include "tests/testing/tls/tls_connection.h"
#include "tests/testing/write_file.h"

namespace lockstep::http {
namespace {

using ::lockstep::testing::Fetch;
using ::lockstep::testing::HttpServerTest;
using ::lockstep::testing::Issued;
using ::lockstep::testing::RawConnection;
using ::lockstep::testing::RawResponse;
using ::lockstep::testing::TestCa;
using ::lockstep::testing::TlsConnection;
using ::lockstep::testing::TlsWish;
using ::lockstep::testing::WriteFile;
using std::chrono::milliseconds;

constexpr char kGet[] = "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n";

class TlsServerTest : public HttpServerTest {
 protected:
  TlsServerTest() { Replace(ca_.Issue({.name = "first"})); }
  ~TlsServerTest() override { server_ = nullptr; }  // it uses the identity

  void Replace(const Issued& issued) {
    WriteFile(Path("server.pem"), issued.certificate);
    WriteFile(Path("server.key"), issued.key);
  }

  static std::string Path(const std::string& name) {
    return ::testing::TempDir() + name;
  }

  // Of clients a certificate of `client_ca` is asked for, where there is one.
  void Start(const TestCa* client_ca = nullptr) {
    TlsFiles files = {.certificate = {"tls_certificate", Path("server.pem")},
                      .key = {"tls_key", Path("server.key")}};
    if (client_ca != nullptr) {
      WriteFile(Path("clients.pem"), client_ca->certificate());
      files.ca = {"tls_client_ca", Path("clients.pem")};
    }
    auto identity = TlsIdentity::Start(files, absl::Milliseconds(5));
    ASSERT_TRUE(identity.ok()) << identity.status();
    identity_ = *std::move(identity);
    options_.tls = identity_.get();
    HttpServerTest::Start();
  }

  // The status of an answer, 0 where there is none.
  int Get(const TlsWish& wish) {
    TlsConnection client(port(), wish);
    if (!client.error().empty() || !client.Send(kGet)) return 0;
    return client.Read().status;
  }

  const TestCa ca_{"ours"};
  std::unique_ptr<TlsIdentity> identity_;
};

TEST_F(TlsServerTest, AConnectionServesOneRequestAfterAnother) {
  Start();
  TlsConnection client(port(), {.ca = ca_.certificate(), .alpn = "http/1.1"});
  ASSERT_EQ(client.error(), "");
  EXPECT_EQ(client.alpn(), "http/1.1");
  EXPECT_EQ(client.version(), "TLSv1.3");
  for (int i = 0; i < 3; ++i) {
    client.Send(kGet);
    EXPECT_EQ(client.Read().body, "hello");
  }
  client.Send("GET /hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  EXPECT_EQ(client.Read().body, "hello");
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(TlsServerTest, LargeBodiesComeWholeInBothDirections) {
  Start();
  std::string body;
  for (int i = 0; body.size() < 3'000'000; ++i) absl::StrAppend(&body, i, ",");
  TlsConnection client(port(), {.ca = ca_.certificate()});
  client.Send(absl::StrCat(
      "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
      "content-length: ",
      body.size(), "\r\n\r\n", body));
  EXPECT_EQ(client.Read().body, body);
}

TEST_F(TlsServerTest, StreamsInSilenceAndNoticesAClientThatHangsUp) {
  options_.timeouts.keep_alive = milliseconds(20);
  Start();
  auto client =
      std::make_unique<TlsConnection>(port(), TlsWish{.ca = ca_.certificate()});
  client->Send("GET /held HTTP/1.1\r\nhost: x\r\n\r\n");
  const Writer writer = AwaitHeld();
  absl::Notification gone;
  writer->OnGone([&] { gone.Notify(); });
  writer->StartStream({}, ": alive\n\n");
  writer->Write("one");
  client->ReadUntil(": alive");
  client = nullptr;
  gone.WaitForNotification();
}

TEST_F(TlsServerTest, OldVersionsAndOtherProtocolsAreRefused) {
  Start();
  EXPECT_EQ(TlsConnection(port(), {.most_version = TLS1_2_VERSION}).version(),
            "TLSv1.2");
  EXPECT_EQ(TlsConnection(port(), {.most_version = TLS1_1_VERSION}).error(),
            "tlsv1 alert protocol version");
  EXPECT_EQ(TlsConnection(port(), {.alpn = "h2"}).error(),
            "tlsv1 alert no application protocol");
  EXPECT_EQ(
      TlsConnection(port(), {.ca = TestCa("other").certificate()}).error(),
      "certificate verify failed");
  EXPECT_EQ(Get({.ca = ca_.certificate()}), 200);
}

TEST_F(TlsServerTest, PlainHttpIsToldToUseTls) {
  Start();
  const RawResponse response = Fetch(port(), "/hello");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.body, "This port speaks HTTPS: use https:// URLs");
  RawConnection garbage(port());
  garbage.Send("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c");
  garbage.ReadAll();  // perhaps an alert, then the end
}

TEST_F(TlsServerTest, AClientThatDoesNotShakeHandsIsClosed) {
  options_.timeouts.handshake = milliseconds(50);
  Start();
  RawConnection silent(port()), slow(port());
  slow.Send("\x16\x03\x01");
  EXPECT_TRUE(silent.IsClosed());
  EXPECT_TRUE(slow.IsClosed());
}

TEST_F(TlsServerTest, WithAClientCaOnlyItsCertificatesMayEnter) {
  const TestCa clients("clients");
  Start(&clients);
  const auto wish = [&](const Issued& own) {
    return TlsWish{.ca = ca_.certificate(), .own = own};
  };
  EXPECT_EQ(Get(wish(clients.Issue({.name = "alice"}))), 200);
  EXPECT_EQ(Get(wish({})), 0);
  EXPECT_EQ(Get(wish(ca_.Issue({.name = "alice"}))), 0);
  EXPECT_EQ(Get(wish(clients.Issue({.from = -2, .until = -1}))), 0);
  TlsWish older = wish({});
  older.most_version = TLS1_2_VERSION;
  EXPECT_EQ(TlsConnection(port(), older).error(),
            "sslv3 alert handshake failure");
}

TEST_F(TlsServerTest, NewCertificatesAreShownWhileOldConnectionsGoOn) {
  Start();
  const TlsWish wish = {.ca = ca_.certificate()};
  TlsConnection old(port(), wish);
  EXPECT_EQ(old.server_name(), "first");
  old.Send("GET /held HTTP/1.1\r\nhost: x\r\n\r\n");
  const Writer writer = AwaitHeld();
  writer->StartStream({}, "");
  writer->Write("begun, ");
  old.ReadUntil("begun");

  Replace(ca_.Issue({.name = "second"}));
  while (TlsConnection(port(), wish).server_name() != "second") continue;
  // A half that does not fit changes nothing.
  WriteFile(Path("server.key"), ca_.Issue({}).key);
  Replace(ca_.Issue({.name = "third"}));
  while (TlsConnection(port(), wish).server_name() != "third") continue;

  writer->Write("ended");
  writer->End(ResponseWriter::After::kKeepConnection);
  EXPECT_EQ(old.Read().body, "begun, ended");
  old.Send(kGet);
  EXPECT_EQ(old.Read().body, "hello");
}

TEST_F(TlsServerTest, DrainAndShutdownEndConnectionsInOrder) {
  Start();
  TlsConnection idle(port(), {.ca = ca_.certificate()});
  idle.Send(kGet);
  EXPECT_EQ(idle.Read().status, 200);
  server_->Drain();
  EXPECT_TRUE(idle.IsClosed());
  EXPECT_EQ(Get({.ca = ca_.certificate()}), 200);
  server_->Shutdown(absl::Milliseconds(50));
}

}  // namespace
}  // namespace lockstep::http
