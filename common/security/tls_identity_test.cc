#include "common/security/tls_identity.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/testing/tls/test_ca.h"
#include "tests/testing/write_file.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Issued;
using ::lockstep::testing::TestCa;
using ::lockstep::testing::WriteFile;

class TlsIdentityTest : public ::testing::Test {
 protected:
  TlsIdentityTest() {
    Write(ca_.Issue({}));
    WriteFile(files_.ca.path, ca_.certificate());
  }

  void Write(const Issued& issued) {
    WriteFile(files_.certificate.path, issued.certificate);
    WriteFile(files_.key.path, issued.key);
  }

  static NamedFile File(const std::string& flag) {
    return {flag, ::testing::TempDir() + flag};
  }

  // Why a start fails, behind the name of the file of `flag`.
  std::string WhyNot(const NamedFile& file) {
    const auto identity = TlsIdentity::Start(files_);
    EXPECT_EQ(identity.status().code(), absl::StatusCode::kInvalidArgument);
    const std::string start =
        absl::StrCat("--", file.flag, " is \"", file.path, "\", ");
    const std::string message(identity.status().message());
    EXPECT_TRUE(absl::StartsWith(message, start)) << message;
    return message.substr(start.size());
  }

  const TestCa ca_{"ours"};
  const TlsFiles files_{.certificate = File("tls_certificate"),
                        .key = File("tls_key"),
                        .ca = File("tls_client_ca")};
};

TEST_F(TlsIdentityTest, HoldsWhatFitsTogether) {
  const auto identity = TlsIdentity::Start(files_);
  ASSERT_TRUE(identity.ok()) << identity.status();
  const auto material = (*identity)->Current();
  EXPECT_TRUE(absl::StrContains(material->certificate, "BEGIN CERTIFICATE"));
  EXPECT_TRUE(absl::StrContains(material->key, "PRIVATE KEY"));
  EXPECT_EQ(material->ca, ca_.certificate());
  EXPECT_EQ((*identity)->Current(), material);
}

TEST_F(TlsIdentityTest, OneSideAloneWillDo) {
  const auto client = TlsIdentity::Start({.ca = files_.ca});
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->Current()->certificate, "");
  EXPECT_EQ((*client)->Current()->ca, ca_.certificate());
  const auto server = TlsIdentity::Start(
      {.certificate = files_.certificate, .key = files_.key});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ((*server)->Current()->ca, "");
}

TEST_F(TlsIdentityTest, ABadFileIsOneSentenceThatNamesItsFlag) {
  Write({"nothing", ""});
  EXPECT_EQ(WhyNot(files_.certificate), "which holds no PEM certificate.");
  Write({ca_.Issue({}).certificate, "nothing"});
  EXPECT_EQ(WhyNot(files_.key),
            "which holds no PEM private key without a password.");
  Write({ca_.Issue({}).certificate, ca_.Issue({}).key});
  EXPECT_EQ(WhyNot(files_.key),
            "which is not the key of the certificate of --tls_certificate.");
  Write(ca_.Issue({.from = -3, .until = -1}));
  EXPECT_EQ(WhyNot(files_.certificate), "whose certificate has expired.");
  Write(ca_.Issue({.from = 1, .until = 3}));
  EXPECT_EQ(WhyNot(files_.certificate), "whose certificate is not valid yet.");
  Issued chain = ca_.Issue({});
  chain.certificate +=
      ca_.certificate().substr(0, ca_.certificate().size() / 2);
  Write(chain);
  EXPECT_EQ(WhyNot(files_.certificate), "in which a certificate is damaged.");
  Write(ca_.Issue({}));
  WriteFile(files_.ca.path, "");
  EXPECT_EQ(WhyNot(files_.ca), "which holds no PEM certificate.");
}

TEST_F(TlsIdentityTest, AnEncryptedKeyAsksNobodyForItsPassword) {
  Issued issued = ca_.Issue({});
  const std::string mark = "BEGIN PRIVATE KEY-----\n";
  issued.key =
      "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
      "DEK-Info: AES-128-CBC,00000000000000000000000000000000\n\n" +
      issued.key.substr(issued.key.find(mark) + mark.size());
  Write(issued);
  EXPECT_EQ(WhyNot(files_.key),
            "which holds no PEM private key without a password.");
}

TEST_F(TlsIdentityTest, IsReadAgainOnceAllFilesFit) {
  const auto identity = TlsIdentity::Start(files_, absl::Milliseconds(5));
  ASSERT_TRUE(identity.ok()) << identity.status();
  const auto first = (*identity)->Current();
  const Issued next = ca_.Issue({});
  WriteFile(files_.certificate.path, next.certificate);
  EXPECT_EQ((*identity)->Current(), first);
  WriteFile(files_.key.path, next.key);
  while ((*identity)->Current() == first) std::this_thread::yield();
  EXPECT_EQ((*identity)->Current()->key, next.key);
  EXPECT_EQ((*identity)->Current()->certificate, next.certificate);
}

}  // namespace
}  // namespace lockstep
