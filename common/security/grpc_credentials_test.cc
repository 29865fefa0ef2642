// gRPC over TLS between processes of ours: real handshakes, with certificates
// made here.

#include "common/security/grpc_credentials.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "common/grpc_server.h"
#include "common/health.grpc.pb.h"
#include "tests/testing/tls/test_ca.h"
#include "tests/testing/write_file.h"

namespace lockstep {
namespace {

using ::grpc::health::v1::Health;
using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;
using ::lockstep::testing::Issued;
using ::lockstep::testing::TestCa;
using ::lockstep::testing::WriteFile;

constexpr absl::Duration kOften = absl::Milliseconds(5);

class GrpcCredentialsTest : public ::testing::Test {
 protected:
  static std::string Path(const std::string& name) {
    return ::testing::TempDir() + name;
  }

  // Files of one end, under names of its own.
  static TlsFiles Write(const std::string& end, const Issued& issued,
                        const std::string& ca) {
    TlsFiles files;
    if (!issued.key.empty()) {
      files.certificate = {"certificate", Path(end + ".pem")};
      files.key = {"key", Path(end + ".key")};
      WriteFile(files.certificate.path, issued.certificate);
      WriteFile(files.key.path, issued.key);
    }
    if (!ca.empty()) {
      files.ca = {"ca", Path(end + ".ca")};
      WriteFile(files.ca.path, ca);
    }
    return files;
  }

  static std::unique_ptr<TlsIdentity> Identity(const std::string& end,
                                               const Issued& issued,
                                               const std::string& ca) {
    auto identity = TlsIdentity::Start(Write(end, issued, ca), kOften);
    EXPECT_TRUE(identity.ok()) << identity.status();
    return *std::move(identity);
  }

  void StartServer(const Issued& issued, const std::string& client_ca) {
    identity_ = Identity("server", issued, client_ca);
    auto server = GrpcServer::Start(
        "127.0.0.1:0", "listen", {}, {},
        {.credentials = MakeServerCredentials(identity_.get())});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  std::unique_ptr<SecureChannel> Connect(ClientTls tls) const {
    return std::make_unique<SecureChannel>(
        absl::StrCat("127.0.0.1:", server_->port()), ChannelArguments(),
        std::move(tls));
  }

  // Whether a call comes through.
  static bool Call(SecureChannel& channel) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(20));
    HealthCheckResponse response;
    return Health::NewStub(channel.Get())
        ->Check(&context, HealthCheckRequest(), &response)
        .ok();
  }

  bool CallWith(const Issued& own, const std::string& ca,
                const std::string& name = "") {
    const auto channel = Connect({Identity("client", own, ca), name});
    return Call(*channel);
  }

  const TestCa ca_{"ours"};
  std::unique_ptr<TlsIdentity> identity_;
  std::unique_ptr<GrpcServer> server_;
};

TEST_F(GrpcCredentialsTest, WithoutIdentitiesNothingIsEncrypted) {
  auto server =
      GrpcServer::Start("127.0.0.1:0", "listen", {}, {},
                        {.credentials = MakeServerCredentials(nullptr)});
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  EXPECT_TRUE(Call(*Connect({})));
}

TEST_F(GrpcCredentialsTest, AClientWantsACertificateOfItsCaForTheName) {
  StartServer(ca_.Issue({.name = "worker"}), "");
  EXPECT_TRUE(CallWith({}, ca_.certificate()));  // 127.0.0.1
  EXPECT_TRUE(CallWith({}, ca_.certificate(), "worker"));
  EXPECT_FALSE(CallWith({}, ca_.certificate(), "other"));
  EXPECT_FALSE(CallWith({}, TestCa("other").certificate()));
  EXPECT_FALSE(Call(*Connect({})));  // in plain text
}

TEST_F(GrpcCredentialsTest, AServerWithACaWantsCertificatesOfIt) {
  StartServer(ca_.Issue({}), ca_.certificate());
  EXPECT_TRUE(CallWith(ca_.Issue({.name = "gateway"}), ca_.certificate()));
  EXPECT_FALSE(CallWith({}, ca_.certificate()));
  EXPECT_FALSE(CallWith(TestCa("other").Issue({}), ca_.certificate()));
}

TEST_F(GrpcCredentialsTest, NewCertificatesAreUsedWhileAStreamGoesOn) {
  StartServer(ca_.Issue({}), ca_.certificate());
  ClientTls tls = {Identity("client", ca_.Issue({}), ca_.certificate()), ""};
  const auto channel = Connect(std::move(tls));
  grpc::ClientContext context;
  const auto stream =
      Health::NewStub(channel->Get())->Watch(&context, HealthCheckRequest());
  HealthCheckResponse health;
  ASSERT_TRUE(stream->Read(&health));
  const auto old_channel = channel->Get();

  // Another authority altogether, at one end after the other.
  const TestCa next("next");
  const std::string both = ca_.certificate() + next.certificate();
  Write("server", next.Issue({}), both);
  Write("client", next.Issue({}), both);
  while (channel->Get() == old_channel || !Call(*channel)) continue;
  EXPECT_TRUE(CallWith(ca_.Issue({}), next.certificate()));

  server_->SetServing(true);
  ASSERT_TRUE(stream->Read(&health));
  EXPECT_EQ(health.status(), HealthCheckResponse::SERVING);
  context.TryCancel();
  stream->Finish();
}

}  // namespace
}  // namespace lockstep
