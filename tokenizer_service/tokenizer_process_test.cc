// The binary as it is run: flags, environment, one line when it serves,
// SIGTERM.

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "common/health.pb.h"
#include "common/program/version.h"
#include "tests/testing/process.h"
#include "tests/testing/wait_for_health.h"
#include "tokenizer_service/remote_tokenizer.h"

namespace lockstep {
namespace {

using testing::Process;

constexpr char kBinary[] = "tokenizer_service/tokenizer";
constexpr char kModel[] = "tests/goldens/tokenizers/small";
constexpr absl::Duration kTimeout = absl::Seconds(30);

TEST(TokenizerProcess, ServesUntilItIsTold) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const auto process = Process::Start(
        kBinary, {absl::StrCat("--model=", kModel), "--listen=127.0.0.1:0"});
    ASSERT_TRUE(process.ok()) << process.status();
    const auto line = (*process)->WaitForLine("tokenizer: serving", kTimeout);
    ASSERT_TRUE(line.ok()) << line.status();
    EXPECT_TRUE(absl::StartsWith(
        *line, absl::StrCat("tokenizer: serving ", kModel, " on 127.0.0.1:")));
    const auto port = (*process)->WaitForPort(kTimeout);
    ASSERT_TRUE(port.ok()) << port.status();
    {
      const auto tokenizer =
          RemoteTokenizer::Connect(absl::StrCat("127.0.0.1:", *port), kTimeout);
      ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
      EXPECT_EQ(*(*tokenizer)->Encode("the", true),
                (std::vector<uint32_t>{1, 274}));
    }
    (*process)->Signal(signal);
    EXPECT_EQ((*process)->WaitForExit(kTimeout).value_or(-1), 0);
  }
}

TEST(TokenizerProcess, TellsOfItsHealthOnAPortOfItsOwn) {
  const auto process = Process::Start(
      kBinary, {absl::StrCat("--model=", kModel), "--listen=127.0.0.1:0",
                "--health_listen=127.0.0.1:0"});
  ASSERT_TRUE(process.ok()) << process.status();
  const auto line = (*process)->WaitForLine("health on port ", kTimeout);
  ASSERT_TRUE(line.ok()) << line.status();
  const auto channel = grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", line->substr(line->rfind(' ') + 1)),
      grpc::InsecureChannelCredentials());
  for (const char* service : {"liveness", "readiness"}) {
    testing::WaitForHealth(channel, service,
                           grpc::health::v1::HealthCheckResponse::SERVING);
  }
  (*process)->Signal(SIGTERM);
  EXPECT_EQ((*process)->WaitForExit(kTimeout).value_or(-1), 0);
}

TEST(TokenizerProcess, TakesFlagsFromTheEnvironment) {
  const auto process = Process::Start(kBinary, {"--listen=127.0.0.1:0"},
                                      {{"LOCKSTEP_MODEL", kModel}});
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_TRUE((*process)->WaitForPort(kTimeout).ok()) << (*process)->output();
}

TEST(TokenizerProcess, SaysWhichVersionItIs) {
  const auto process = Process::Start(kBinary, {"--version"});
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ((*process)->WaitForExit(kTimeout).value_or(-1), 0);
  EXPECT_EQ((*process)->output(),
            absl::StrCat("tokenizer version ", kVersion, "\n"));
}

TEST(TokenizerProcess, SaysInOneSentenceWhyItDoesNotStart) {
  const struct {
    std::vector<std::string> arguments;
    std::string error;
  } kCases[] = {
      {{}, "tokenizer: --model is not set"},
      {{absl::StrCat("--model=", kModel), "--chat_template=/nowhere"},
       "tokenizer: --chat_template is /nowhere: "},
      {{"--model=x", "--listen=nowhere"}, "tokenizer: --listen is \"nowhere\""},
      {{"--model=x", "--listen=h:70000"}, "tokenizer: --listen is \"h:70000\""},
      {{"--model=x", "--health_listen=9"},
       "tokenizer: --health_listen is \"9\""},
      {{"--model=x", "--threads=0"}, "tokenizer: --threads is 0"},
      {{"--model=x", "y"}, "tokenizer: \"y\" is no flag"},
      {{"--model=/does/not/exist"}, "/does/not/exist"},
  };
  for (const auto& c : kCases) {
    const auto process = Process::Start(kBinary, c.arguments);
    ASSERT_TRUE(process.ok()) << process.status();
    EXPECT_EQ((*process)->WaitForExit(kTimeout).value_or(-1), 1);
    EXPECT_TRUE(absl::StrContains((*process)->output(), c.error))
        << (*process)->output();
  }
}

}  // namespace
}  // namespace lockstep
