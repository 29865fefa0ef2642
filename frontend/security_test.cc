#include "frontend/security.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <gflags/gflags.h>
#include <glog/logging.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>

#include "frontend/security_options.h"
#include "tests/testing/tls/test_ca.h"
#include "tests/testing/write_file.h"

namespace lockstep {
namespace {

using ::lockstep::testing::WriteFile;

constexpr char kFirst[] = "Bearer aaaaaaaaaaaaaaaa";
constexpr char kSecond[] = "Bearer bbbbbbbbbbbbbbbb";

// What is logged while it lives.
class LogOfTest final : public google::LogSink {
 public:
  LogOfTest() { google::AddLogSink(this); }
  ~LogOfTest() override { google::RemoveLogSink(this); }
  LogOfTest(const LogOfTest&) = delete;
  LogOfTest& operator=(const LogOfTest&) = delete;

  // All of it, once it has these words.
  std::string Await(absl::string_view words) {
    const auto has_words = [&] { return absl::StrContains(text_, words); };
    absl::MutexLock lock(&mutex_, absl::Condition(&has_words));
    return text_;
  }

 private:
  using google::LogSink::send;
  void send(google::LogSeverity /*severity*/, const char* /*full_filename*/,
            const char* /*base_filename*/, int /*line*/,
            const google::LogMessageTime& /*time*/, const char* message,
            size_t size) override {
    absl::MutexLock lock(&mutex_);
    absl::StrAppend(&text_, absl::string_view(message, size), "\n");
  }

  absl::Mutex mutex_;
  std::string text_;
};

class SecurityTest : public ::testing::Test {
 protected:
  SecurityTest() {
    options_.api_keys_file = ::testing::TempDir() + "keys";
    WriteFile(options_.api_keys_file, "alice aaaaaaaaaaaaaaaa\n");
  }

  SecurityOptions options_;
};

TEST_F(SecurityTest, WithoutAFileNoKeyIsNeeded) {
  const auto security = Security::Start({});
  ASSERT_TRUE(security.ok()) << security.status();
  EXPECT_TRUE((*security)->access().Check("").ok());
}

TEST_F(SecurityTest, KeysAreReadAgainAndABadFileKeepsTheOld) {
  const auto security = Security::Start(options_);
  ASSERT_TRUE(security.ok()) << security.status();
  const AccessControl& access = (*security)->access();
  EXPECT_TRUE(access.Check(kFirst).ok());
  EXPECT_FALSE(access.Check(kSecond).ok());

  WriteFile(options_.api_keys_file, "bob bbbbbbbbbbbbbbbb\n");
  while (!access.Check(kSecond).ok()) std::this_thread::yield();
  EXPECT_FALSE(access.Check(kFirst).ok());

  LogOfTest log;
  WriteFile(options_.api_keys_file, "bob secretsecretsecret nonsense\n");
  const std::string logged = log.Await("What was read before stays in force.");
  EXPECT_NE(logged.find("line 1 of --api_keys_file: what follows the key must "
                        "be"),
            std::string::npos)
      << logged;
  EXPECT_EQ(logged.find("secretsecretsecret"), std::string::npos);
  EXPECT_TRUE(access.Check(kSecond).ok());

  WriteFile(options_.api_keys_file, "alice aaaaaaaaaaaaaaaa\n");
  while (!access.Check(kFirst).ok()) std::this_thread::yield();
}

TEST_F(SecurityTest, AStartWithABadFileIsOneSentence) {
  WriteFile(options_.api_keys_file, "alice\n");
  EXPECT_EQ(Security::Start(options_).status(),
            absl::InvalidArgumentError("line 1 of --api_keys_file: it must "
                                       "have a name and a key."));
  options_.api_keys_file = "nowhere";
  EXPECT_EQ(Security::Start(options_).status(),
            absl::InvalidArgumentError(
                "--api_keys_file is \"nowhere\", which can not be opened: No "
                "such file or directory."));
}

TEST_F(SecurityTest, TlsIsWhatTheFilesSay) {
  const testing::TestCa ca("ours");
  const testing::Issued issued = ca.Issue({});
  const auto write = [](const std::string& flag, const std::string& text) {
    WriteFile(::testing::TempDir() + flag, text);
    return NamedFile{flag, ::testing::TempDir() + flag};
  };
  options_.tls.certificate = write("tls_certificate", issued.certificate);
  options_.tls.key = write("tls_key", issued.key);
  options_.worker_tls.files.ca = write("worker_tls_ca", ca.certificate());
  options_.worker_tls.server_name = "worker";
  const auto security = Security::Start(options_);
  ASSERT_TRUE(security.ok()) << security.status();
  EXPECT_EQ((*security)->tls()->Current()->certificate, issued.certificate);
  const ClientTls& worker_tls = (*security)->worker_tls();
  EXPECT_EQ(worker_tls.identity->Current()->ca, ca.certificate());
  EXPECT_EQ(worker_tls.server_name, "worker");

  write("worker_tls_ca", "nothing");
  EXPECT_TRUE(absl::StartsWith(Security::Start(options_).status().message(),
                               "--worker_tls_ca is "));
}

using Flags = std::map<std::string, std::string>;

absl::StatusOr<SecurityOptions> Parse(const Flags& flags) {
  gflags::FlagSaver saver;
  for (const auto& [name, value] : flags) {
    gflags::SetCommandLineOption(name.c_str(), value.c_str());
  }
  return SecurityOptionsFromFlags();
}

TEST(SecurityOptions, AreFlags) {
  const auto options =
      Parse({{"api_keys_file", "keys"},
             {"allowed_origins", "https://a.example.org,http://localhost:3000"},
             {"http_max_connections_per_address", "64"},
             {"tls_certificate", "gateway.pem"},
             {"tls_key", "gateway.key"},
             {"worker_tls_ca", "ca.pem"},
             {"worker_tls_name", "worker"},
             {"client_tls_certificate", "client.pem"},
             {"client_tls_key", "client.key"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->worker_tls.files.key.path, "client.key");
  EXPECT_EQ(options->tokenizer_tls.files.key.path, "");
  EXPECT_EQ(options->ToString(),
            "api_keys_file=keys "
            "allowed_origins=https://a.example.org,http://localhost:3000 "
            "http_max_connections_per_address=64 tls=gateway.pem, "
            "worker_tls=client.pem,ca.pem worker_tls_name=worker "
            "tokenizer_tls=none tokenizer_tls_name=");
}

TEST(SecurityOptions, ByDefaultThereIsNone) {
  const auto options = Parse({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->ToString(),
            "api_keys_file= allowed_origins= "
            "http_max_connections_per_address=0 tls=none worker_tls=none "
            "worker_tls_name= tokenizer_tls=none tokenizer_tls_name=");
}

TEST(SecurityOptions, WhatDoesNotGoTogetherIsOneSentence) {
  const struct {
    Flags flags;
    std::string why;
  } kCases[] = {
      {{{"allowed_origins", "example.org"}},
       "--allowed_origins names \"example.org\"; an origin is https://HOST, "
       "https://HOST:PORT or *, without a path."},
      {{{"http_max_connections_per_address", "-1"}},
       "--http_max_connections_per_address is -1; it must be 0 to 1000000."},
      {{{"worker_tls_name", "worker"}},
       "--worker_tls_name is set and --worker_tls_ca is not; without TLS there "
       "is no name to check."},
      {{{"tokenizer_tls_name", "tokenizer"}},
       "--tokenizer_tls_name is set and --tokenizer_tls_ca is not; without TLS "
       "there is no name to check."},
      {{{"client_tls_certificate", "a"}, {"client_tls_key", "b"}},
       "--client_tls_certificate is set, and neither --worker_tls_ca nor "
       "--tokenizer_tls_ca is; without TLS there is nobody to show it to."},
      {{{"client_tls_key", "b"}, {"worker_tls_ca", "c"}},
       "--client_tls_key is set and --client_tls_certificate is not; a "
       "certificate and its key go together."},
      {{{"tls_client_ca", "c"}},
       "--tls_client_ca is set and --tls_certificate is not; without TLS no "
       "client can show a certificate."},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Parse(c.flags).status(), absl::InvalidArgumentError(c.why));
  }
}

}  // namespace
}  // namespace lockstep
