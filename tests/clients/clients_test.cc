// What people use: grpcurl, ghz, the chat and the openai libraries, as
// processes.

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/clients/client_programs.h"
#include "tests/e2e/serving_test_fixture.h"
#include "tests/testing/process.h"

namespace lockstep {
namespace {

using ::lockstep::testing::FindProgram;
using ::lockstep::testing::InRunfiles;
using ::lockstep::testing::Process;
using ::lockstep::testing::RunJavaScript;
using ::lockstep::testing::RunPython;
using ::lockstep::testing::ServingTest;
using ::testing::HasSubstr;
using ::testing::Not;

class GrpcurlTest : public ServingTest {
 protected:
  void SetUp() override {
    grpcurl_ = FindProgram("grpcurl");
    if (grpcurl_.empty()) GTEST_SKIP() << "grpcurl is not installed";
    ASSERT_NO_FATAL_FAILURE(StartBoth());
  }

  std::unique_ptr<Process> Start(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "-plaintext");
    return *Process::Start(grpcurl_, arguments);
  }

  // Of a use that succeeds.
  std::string OutputOf(const std::vector<std::string>& arguments) {
    const auto process = Start(arguments);
    EXPECT_EQ(process->WaitForExit(kTimeout).value_or(-1), 0)
        << process->output();
    return process->output();
  }

 private:
  std::string grpcurl_;
};

TEST_F(GrpcurlTest, ListsDescribesAndCalls) {
  EXPECT_THAT(OutputOf({address_, "list"}), HasSubstr("lockstep.v1.Inference"));
  EXPECT_THAT(
      OutputOf({address_, "describe", "lockstep.v1.Inference.Generate"}),
      HasSubstr("returns ( stream .lockstep.v1."));
  EXPECT_THAT(OutputOf({"-d", R"({"service":"lockstep.v1.Inference"})",
                        address_, "grpc.health.v1.Health/Check"}),
              HasSubstr("\"SERVING\""));
  EXPECT_THAT(
      OutputOf(
          {"-d",
           R"({"text":"The capital","sampling":{"temperature":0,"max_tokens":4}})",
           address_, "lockstep.v1.Inference/Generate"}),
      HasSubstr("\"summary\""));
}

TEST_F(GrpcurlTest, AnInterruptFreesThePages) {
  const auto endless =
      Start({"-d",
             absl::StrCat(R"({"text":"The","sampling":{"ignore_eos":true,)",
                          R"("max_tokens":)", kEndlessTokens, "}}"),
             address_, "lockstep.v1.Inference/Generate"});
  ASSERT_TRUE(endless->WaitForLine("\"delta\"", kTimeout).ok());
  endless->Signal(SIGINT);
  EXPECT_TRUE(endless->WaitForExit(kTimeout).ok());
  ExpectIdleSoon();
}

TEST_F(ServingTest, GhzCountsNothingButAnswers) {
  const std::string ghz = FindProgram("ghz");
  if (ghz.empty()) {
    GTEST_SKIP() << "ghz is not installed; tools/fetch.sh ghz builds it";
  }
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  const auto run = *Process::Start(
      ghz, {"--insecure", "--call=lockstep.v1.Inference.Generate",
            "--data={\"text\":\"The\",\"sampling\":{\"max_tokens\":4,"
            "\"ignore_eos\":true}}",
            "--total=40", "--concurrency=8", "--format=json", address_});
  EXPECT_EQ(run->WaitForExit(kTimeout).value_or(-1), 0) << run->output();
  const auto report = nlohmann::json::parse(run->output(), nullptr, false);
  ASSERT_TRUE(report.is_object()) << run->output();
  EXPECT_EQ(report["statusCodeDistribution"],
            nlohmann::json({{"OK", 40}}));
  ExpectIdleSoon();
}

TEST_F(ServingTest, ThePythonLibraryFindsWhatItKnows) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  RunPython("openai_sdk.py", {absl::StrCat("http://", http_address_, "/v1")});
  ExpectIdleSoon();  // what was left early, too
}

TEST_F(ServingTest, TheJavaScriptLibraryFindsWhatItKnows) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  RunJavaScript("openai_sdk.js",
                {absl::StrCat("http://", http_address_, "/v1")});
  ExpectIdleSoon();
}

TEST_F(ServingTest, ChatsThroughAPipe) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  const auto chat = [this](const std::string& lines) {
    return *Process::Start(
        "/bin/sh",
        {"-c", absl::StrCat(
                   "printf '", lines, "' | ", InRunfiles("frontend/chat/chat"),
                   " --temperature=0 --max_tokens=8 --server=", address_)});
  };
  auto good = chat("hello\\nand more\\n");
  EXPECT_EQ(good->WaitForExit(kTimeout).value_or(-1), 0) << good->output();
  EXPECT_FALSE(good->output().empty());
  EXPECT_THAT(good->output(), Not(HasSubstr("\033")));

  auto commands = chat("/nope\\n/exit\\nnever sent\\n");
  EXPECT_EQ(commands->WaitForExit(kTimeout).value_or(-1), 0);
  EXPECT_EQ(commands->output(),
            "There is no command /nope; /help lists them.\n");

  gateway_->Signal(SIGTERM);
  EXPECT_EQ(gateway_->WaitForExit(kTimeout).value_or(-1), 0);
  auto alone = chat("hello\\n");
  EXPECT_EQ(alone->WaitForExit(kTimeout).value_or(-1), 1);
  EXPECT_EQ(alone->output(),
            absl::StrCat("There is no gateway at ", address_,
                         "; start one with ./lockstep up, or name another "
                         "with --server.\n"));
}

}  // namespace
}  // namespace lockstep
