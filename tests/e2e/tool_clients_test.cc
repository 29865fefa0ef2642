// The official openai library with tools and reasoning, against a gateway whose
// worker says what a model would.

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/time/time.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/testing/gateway_test_fixture.h"
#include "tests/testing/process.h"

namespace lockstep::testing {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);

constexpr char kCalls[] =
    "<think>\nI must look.\n</think>\n\n"
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
    "{\"city\": \"Zürich\"}}\n</tool_call>\n"
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
    "{\"city\": \"東京\"}}\n</tool_call>";

FakeAnswer AnswerAsAModel(const v1::WorkerGenerateRequest& request) {
  std::string prompt;
  for (const uint32_t id : request.prompt_token_ids()) {
    if (id < FakeTokenizer::kBos) prompt += static_cast<char>(id);
  }
  FakeAnswer answer = Say(
      request, absl::StrContains(prompt, "[tool]") ? "It is 21 °C." : kCalls);
  answer.messages[answer.messages.size() - 2] = FinishMessage(0, v1::STOP);
  return answer;
}

using ToolClientsTest = GatewayTest;

// tools/fetch.sh clients brings the library, and says which Python it is for.
TEST_F(ToolClientsTest, TheOpenAiLibraryFindsWhatItKnows) {
  const char* data = getenv("LOCKSTEP_TEST_DATA");
  const std::string clients =
      absl::StrCat(data == nullptr ? "" : data, "/clients");
  const std::string python = clients + "/python3";
  if (access(python.c_str(), X_OK) != 0) {
    GTEST_SKIP() << "there is no openai library in " << clients
                 << "; ./lockstep test fetches it";
  }
  worker_.set_script(AnswerAsAModel);
  const auto sdk = *Process::Start(
      python,
      {InRunfiles("tests/e2e/openai_tools_sdk.py"),
       absl::StrCat("http://127.0.0.1:", gateway_->ports().http, "/v1")},
      {{"PYTHONPATH", clients + "/packages"}});
  EXPECT_EQ(sdk->WaitForExit(kTimeout).value_or(-1), 0) << sdk->output();
}

}  // namespace
}  // namespace lockstep::testing
