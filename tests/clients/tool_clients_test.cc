// The official openai libraries with tools, reasoning and retries, against a
// gateway whose worker says what a model would.

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/synchronization/mutex.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "common/error_reason.h"
#include "tests/clients/client_programs.h"
#include "tests/testing/gateway_test_fixture.h"

namespace lockstep::testing {
namespace {

constexpr char kCalls[] =
    "<think>\nI must look.\n</think>\n\n"
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
    "{\"city\": \"Zürich\"}}\n</tool_call>\n"
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
    "{\"city\": \"東京\"}}\n</tool_call>";

constexpr absl::Duration kRetryDelay = absl::Milliseconds(200);

std::string TextOf(const v1::WorkerGenerateRequest& request) {
  std::string prompt;
  for (const uint32_t id : request.prompt_token_ids()) {
    if (id < FakeTokenizer::kBos) prompt += static_cast<char>(id);
  }
  return prompt;
}

class ToolClientsTest : public GatewayTest {
 protected:
  // Of the prompts the tools' parameters are a part.
  ToolClientsTest()
      : GatewayTest([this](GatewayOptions*) {
          worker_.model_info().set_max_context_tokens(500);
        }) {
    worker_.set_script(
        [this](const auto& request) { return AnswerAsAModel(request); });
  }

  // "busy N": the first N times the queue is full.
  FakeAnswer AnswerAsAModel(const v1::WorkerGenerateRequest& request) {
    const std::string prompt = TextOf(request);
    const size_t busy = prompt.find("busy ");
    if (busy != prompt.npos) {
      const int times = prompt[busy + 5] - '0';
      absl::MutexLock lock(&mutex_);
      if (asked_[prompt]++ >= times) return Say(request, "At last.");
      FakeAnswer refusal;
      refusal.status = MakeError(ErrorReason::kQueueFullRequests, "full.",
                                 {.retry_delay = kRetryDelay});
      return refusal;
    }
    FakeAnswer answer = Say(
        request, absl::StrContains(prompt, "[tool]") ? "It is 21 °C." : kCalls);
    answer.messages[answer.messages.size() - 2] = FinishMessage(0, v1::STOP);
    return answer;
  }

  std::string BaseUrl() const {
    return absl::StrCat("http://127.0.0.1:", gateway_->ports().http, "/v1");
  }

  // Three times the one that was busy twice, once the one that gave up.
  void ExpectTriedAgain() {
    absl::MutexLock lock(&mutex_);
    std::vector<int> times;
    for (const auto& [prompt, count] : asked_) times.push_back(count);
    EXPECT_THAT(times, ::testing::ElementsAre(3, 1));
  }

  absl::Mutex mutex_;
  std::map<std::string, int> asked_ ABSL_GUARDED_BY(mutex_);  // the busy ones
};

TEST_F(ToolClientsTest, ThePythonLibraryFindsWhatItKnows) {
  RunPython("openai_tools_sdk.py", {BaseUrl()});
  if (!IsSkipped()) ExpectTriedAgain();
}

TEST_F(ToolClientsTest, TheJavaScriptLibraryFindsWhatItKnows) {
  RunJavaScript("openai_tools_sdk.js", {BaseUrl()});
  if (!IsSkipped()) ExpectTriedAgain();
}

}  // namespace
}  // namespace lockstep::testing
