#include "common/security/tls_flags.h"

#include <gflags/gflags.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace lockstep {
namespace {

absl::StatusOr<TlsFiles> Parse(
    const std::map<std::string, std::string>& flags) {
  gflags::FlagSaver saver;
  for (const auto& [name, value] : flags) {
    gflags::SetCommandLineOption(name.c_str(), value.c_str());
  }
  return ServerTlsFilesFromFlags();
}

TEST(TlsFlags, ByDefaultThereIsNoTls) {
  const auto files = Parse({});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(ToString(*files), "none");
  EXPECT_EQ(*StartServerTls(*files), nullptr);
}

TEST(TlsFlags, NameTheFiles) {
  const auto files = Parse({{"tls_certificate", "server.pem"},
                            {"tls_key", "server.key"},
                            {"tls_client_ca", "clients.pem"}});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->certificate.path, "server.pem");
  EXPECT_EQ(files->key.path, "server.key");
  EXPECT_EQ(files->ca.path, "clients.pem");
  EXPECT_EQ(ToString(*files), "server.pem,clients.pem");
}

TEST(TlsFlags, HalfAPairIsRefused) {
  EXPECT_EQ(Parse({{"tls_certificate", "server.pem"}}).status().message(),
            "--tls_certificate is set and --tls_key is not; a certificate and "
            "its key go together.");
  EXPECT_EQ(Parse({{"tls_key", "server.key"}}).status().message(),
            "--tls_key is set and --tls_certificate is not; a certificate and "
            "its key go together.");
  EXPECT_EQ(Parse({{"tls_client_ca", "clients.pem"}}).status().message(),
            "--tls_client_ca is set and --tls_certificate is not; without TLS "
            "no client can show a certificate.");
}

}  // namespace
}  // namespace lockstep
