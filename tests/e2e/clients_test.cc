// What people use: grpcurl and the chat, as processes.

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/e2e/serving_test_fixture.h"
#include "tests/testing/process.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Process;
using ::lockstep::testing::ServingTest;

// The path of grpcurl, empty where it is not installed.
std::string FindGrpcurl() {
  const passwd* user = getpwuid(getuid());
  const std::string home = user == nullptr ? "" : user->pw_dir;
  for (const std::string& folder :
       {home + "/go/bin", std::string("/usr/local/bin"),
        std::string("/usr/bin")}) {
    const std::string path = folder + "/grpcurl";
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

TEST_F(ServingTest, Grpcurl) {
  const std::string grpcurl = FindGrpcurl();
  if (grpcurl.empty()) return;  // Go is not everywhere
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "-plaintext");
    return *Process::Start(grpcurl, arguments);
  };

  auto list = run({address_, "list"});
  EXPECT_EQ(list->WaitForExit(kTimeout).value_or(-1), 0) << list->output();
  EXPECT_TRUE(absl::StrContains(list->output(), "lockstep.v1.Inference"));

  auto describe = run({address_, "describe", "lockstep.v1.Inference.Generate"});
  EXPECT_EQ(describe->WaitForExit(kTimeout).value_or(-1), 0);
  EXPECT_TRUE(
      absl::StrContains(describe->output(), "returns ( stream .lockstep.v1."))
      << describe->output();

  auto health = run({"-d", R"({"service":"lockstep.v1.Inference"})", address_,
                     "grpc.health.v1.Health/Check"});
  EXPECT_EQ(health->WaitForExit(kTimeout).value_or(-1), 0);
  EXPECT_TRUE(absl::StrContains(health->output(), "\"SERVING\""))
      << health->output();

  auto generate = run(
      {"-d",
       R"({"text":"The capital","sampling":{"temperature":0,"max_tokens":4}})",
       address_, "lockstep.v1.Inference/Generate"});
  EXPECT_EQ(generate->WaitForExit(kTimeout).value_or(-1), 0);
  EXPECT_TRUE(absl::StrContains(generate->output(), "\"summary\""))
      << generate->output();

  auto endless =
      run({"-d",
           absl::StrCat(R"({"text":"The","sampling":{"ignore_eos":true,)",
                        R"("max_tokens":)", kEndlessTokens, "}}"),
           address_, "lockstep.v1.Inference/Generate"});
  ASSERT_TRUE(endless->WaitForLine("\"delta\"", kTimeout).ok());
  endless->Signal(SIGINT);
  EXPECT_TRUE(endless->WaitForExit(kTimeout).ok());
  ExpectIdleSoon();
}

TEST_F(ServingTest, ChatsThroughAPipe) {
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  const auto chat = [this](const std::string& lines) {
    return *Process::Start(
        "/bin/sh",
        {"-c", absl::StrCat("printf '", lines, "' | ", getenv("TEST_SRCDIR"),
                            "/", getenv("TEST_WORKSPACE"),
                            "/frontend/chat/chat --temperature=0 "
                            "--max_tokens=8 --server=",
                            address_)});
  };
  auto good = chat("hello\\nand more\\n");
  EXPECT_EQ(good->WaitForExit(kTimeout).value_or(-1), 0) << good->output();
  EXPECT_FALSE(good->output().empty());
  EXPECT_FALSE(absl::StrContains(good->output(), "\033"));

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
