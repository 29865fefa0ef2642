// The clients in examples/, as processes, against a gateway whose worker says
// what it is told.

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/testing/gateway_test_fixture.h"
#include "tests/testing/process.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(60);

// What examples/check.sh has built in this checkout; it may be missing.
std::string Built(const std::string& language) {
  const std::filesystem::path script =
      std::filesystem::canonical(InRunfiles("examples/check.sh"));
  return script.parent_path().parent_path() / ".lockstep/examples" /
         (language + ".sh");
}

class ExamplesTest : public GatewayTest,
                     public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    const std::string language = GetParam();
    if (language == "cpp") {
      program_ = "examples/cpp/client";
    } else if (language == "python") {
      program_ = "/usr/bin/python3";
      arguments_ = {InRunfiles("examples/python/client.py")};
      environment_["PYTHONPATH"] = InRunfiles("examples/python");
    } else if (std::filesystem::exists(Built(language))) {
      program_ = "/bin/bash";
      arguments_ = {Built(language)};
    } else {
      GTEST_SKIP() << "examples/check.sh has not built it here";
    }
    arguments_.push_back(absl::StrCat("127.0.0.1:", gateway_->ports().grpc));
    arguments_.push_back("hi");
  }

  std::unique_ptr<Process> Ask() {
    return *Process::Start(program_, arguments_, environment_);
  }

  std::string program_;
  std::vector<std::string> arguments_;
  std::map<std::string, std::string> environment_;
};

// A line, and then nothing more.
FakeAnswer SayALineAndHang(const v1::WorkerGenerateRequest& request) {
  FakeAnswer answer = Hang(request);
  answer.messages.push_back(DeltaMessage(0, "one\n"));
  return answer;
}

TEST_P(ExamplesTest, StreamsAnAnswer) {
  const auto client = Ask();
  EXPECT_EQ(client->WaitForExit(kTimeout).value_or(-1), 0) << client->output();
  EXPECT_THAT(client->output(), HasSubstr("né!"));
  ASSERT_EQ(worker_.requests().size(), 1);
  EXPECT_EQ(worker_.requests()[0].sampling().max_tokens(), 64);
  EXPECT_EQ(worker_.requests()[0].sampling().temperature(), 0);
}

TEST_P(ExamplesTest, ShowsTextAsItComesAndCancelsOnAnInterrupt) {
  worker_.set_script(SayALineAndHang);
  const auto client = Ask();
  ASSERT_TRUE(client->WaitForLine("one", kTimeout).ok()) << client->output();
  client->Signal(SIGINT);
  EXPECT_NE(client->WaitForExit(kTimeout).value_or(0), 0) << client->output();
  worker_.WaitForCancels(1);
}

// Which may pass before the worker has heard of the request.
TEST_P(ExamplesTest, GivesUpAtItsDeadline) {
  worker_.set_script(Hang);
  environment_["LOCKSTEP_DEADLINE_S"] = "1";
  const auto client = Ask();
  EXPECT_EQ(client->WaitForExit(kTimeout).value_or(-1), 1) << client->output();
  EXPECT_THAT(client->output(),
              ::testing::ContainsRegex("(deadline|Deadline|DEADLINE)"));
}

// The id of a request of which the gateway itself makes a second is ID-2.
TEST_P(ExamplesTest, AsksAgainWhereNothingHasBegun) {
  constexpr int kMostOfOneRequest = 3;  // it, and the gateway's retries
  worker_.set_script([refusals = 0](const auto& request) mutable {
    FakeAnswer refusal;
    refusal.status = absl::ResourceExhaustedError("the queue is full.");
    return refusals++ < kMostOfOneRequest ? refusal : Say(request, "done");
  });
  const auto client = Ask();
  EXPECT_EQ(client->WaitForExit(kTimeout).value_or(-1), 0) << client->output();
  EXPECT_THAT(client->output(), HasSubstr("done"));
  std::set<std::string> asked;
  for (const v1::WorkerGenerateRequest& request : worker_.requests()) {
    asked.insert(
        request.request_id().substr(0, sizeof("gen-0123456789abcdef") - 1));
  }
  EXPECT_GT(asked.size(), 1);
}

INSTANTIATE_TEST_SUITE_P(Languages, ExamplesTest,
                         ::testing::Values("cpp", "python", "node", "go",
                                           "java"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lockstep::testing
