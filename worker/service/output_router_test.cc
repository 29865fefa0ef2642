#include "worker/service/output_router.h"

#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error_reason.h"
#include "tests/testing/router_step.h"

namespace lockstep {
namespace {

using Next = OutputStream::Next;

class OutputRouterTest : public ::testing::Test {
 protected:
  std::shared_ptr<OutputStream> Live(uint64_t number, int max_positions = 100) {
    auto request = std::make_shared<v1::AddRequest>();
    request->set_request(number);
    request->add_prompt_token_ids(1);
    request->mutable_sampling()->set_n(1);
    EXPECT_TRUE(inbox_.Add(*request).ok());
    auto stream = std::make_shared<OutputStream>(
        "id-" + std::to_string(number), request,
        OutputStream::Options{.max_buffered_positions = max_positions});
    EXPECT_TRUE(router_.Register(stream).ok());
    return stream;
  }

  void EndStep() { testing::EndStepAndWait(router_); }

  int NumAborts() {
    std::vector<std::string> messages;
    EXPECT_TRUE(inbox_.Drain(/*idle=*/false, 1000, &messages).ok());
    int aborts = 0;
    for (const std::string& bytes : messages) {
      v1::RankMessage message;
      EXPECT_TRUE(message.ParseFromString(bytes));
      aborts += message.has_abort();
    }
    return aborts;
  }

  RequestInbox inbox_{{.max_queued_requests = 10, .max_queued_tokens = 100}};
  OutputRouter router_{&inbox_};
};

TEST_F(OutputRouterTest, ALiveNameIsTakenUntilItsLastChoiceEnds) {
  const auto stream = Live(1);
  EXPECT_EQ(router_.Find("id-1"), stream);
  const auto again = std::make_shared<OutputStream>(
      "id-1", std::make_shared<v1::AddRequest>(), OutputStream::Options());
  EXPECT_EQ(router_.Register(again).code(), absl::StatusCode::kAlreadyExists);
  router_.OnFinish({.request = 1}, v1::STOP, 2);
  EndStep();
  EXPECT_EQ(router_.Find("id-1"), nullptr);
  EXPECT_TRUE(router_.Register(again).ok());
}

TEST_F(OutputRouterTest, WakesOnceAStepTheStreamsItTouched) {
  const auto one = Live(1), two = Live(2);
  int wakes[2] = {};
  one->set_reader([&] { ++wakes[0]; });
  two->set_reader([&] { ++wakes[1]; });
  router_.OnToken({.request = 1}, 5, {});
  router_.OnToken({.request = 1}, 6, {});
  EndStep();
  EndStep();
  EXPECT_THAT(wakes, ::testing::ElementsAre(1, 0));
  router_.OnToken({.request = 1}, 7, {});
  router_.OnFinish({.request = 2}, v1::ABORTED, std::nullopt);
  EndStep();
  EXPECT_THAT(wakes, ::testing::ElementsAre(2, 1));
}

TEST_F(OutputRouterTest, NothingIsToldBeforeTheStepEnds) {
  const auto stream = Live(1);
  v1::WorkerGenerateResponse message;
  EXPECT_EQ(stream->Take(&message), Next::kMessage);  // accepted
  router_.OnToken({.request = 1}, 5, {});
  EXPECT_EQ(stream->Take(&message), Next::kNothing);
  EndStep();
  EXPECT_EQ(stream->Take(&message), Next::kMessage);
}

// Even by a reader that looks in between.
TEST_F(OutputRouterTest, AChoiceWithoutAnAnswerEndsItsRequest) {
  const struct {
    v1::FinishReason reason;
    std::string told;
  } kCases[] = {{v1::GRAMMAR_TOO_COMPLEX, "INVALID_REQUEST"},
                {v1::NOT_FINITE, "NOT_FINITE"}};
  uint64_t number = 0;
  for (const auto& c : kCases) {
    const auto stream = Live(++number);
    NumAborts();
    router_.OnFinish({.request = number}, c.reason, std::nullopt);
    EndStep();
    EXPECT_EQ(ErrorReasonOf(stream->status()), c.told);
    EXPECT_EQ(NumAborts(), 1);
    v1::WorkerGenerateResponse message;
    EXPECT_EQ(stream->Take(&message), Next::kEnd);
    EXPECT_EQ(router_.num_live(), 0);
  }
}

TEST_F(OutputRouterTest, AStepDoesNotWaitForAReader) {
  const auto stream = Live(1);
  absl::Notification reading, may_go_on;
  stream->set_reader([&] {
    if (!reading.HasBeenNotified()) reading.Notify();
    may_go_on.WaitForNotification();
  });
  router_.OnToken({.request = 1}, 5, {});
  router_.EndStep();
  reading.WaitForNotification();
  router_.OnFinish({.request = 1}, v1::STOP, 2);
  router_.EndStep();
  may_go_on.Notify();
  stream->set_reader(nullptr);
}

// It ends while messages are applied; then the step fails, and so does the
// group, which knows nothing of it any more.
TEST_F(OutputRouterTest, AStreamThatEndedInAFailedStepIsWoken) {
  const auto stream = Live(1);
  absl::Notification woken;
  stream->set_reader([&] { woken.Notify(); });
  router_.OnFinish({.request = 1}, v1::ABORTED, std::nullopt);
  router_.FailAll(absl::UnavailableError("gone"));
  EndStep();
  woken.WaitForNotification();
  EXPECT_EQ(stream->status(), absl::UnavailableError("gone"));
}

TEST_F(OutputRouterTest, ARequestWaitsUntilItsFirstStepOrItsEnd) {
  const auto places = [&] {
    int places = 0;
    while (inbox_.Add({}).ok()) ++places;
    for (int i = 0; i < places; ++i) inbox_.Release({});
    return places;
  };
  Live(1);
  Live(2);
  EXPECT_EQ(places(), 8);
  router_.OnFirstScheduled({.request = 1}, 0);
  EndStep();
  EXPECT_EQ(places(), 9);
  router_.OnFinish({.request = 1}, v1::STOP, 2);
  EndStep();
  EXPECT_EQ(places(), 9);
  router_.OnFinish({.request = 2}, v1::ABORTED, std::nullopt);
  EndStep();
  EXPECT_EQ(places(), 10);
}

TEST_F(OutputRouterTest, ASlowReaderEndsItsOwnStreamAlone) {
  const auto slow = Live(1, 2), other = Live(2);
  for (uint32_t token = 0; token < 5; ++token) {
    router_.OnToken({.request = 1}, token, {});
    router_.OnToken({.request = 2}, token, {});
  }
  EndStep();
  EXPECT_EQ(slow->status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(other->status().ok());
  EXPECT_EQ(NumAborts(), 1);
  // It is live until the scheduler has ended it.
  EXPECT_NE(router_.Find("id-1"), nullptr);
  router_.OnFinish({.request = 1}, v1::ABORTED, std::nullopt);
  EndStep();
  EXPECT_EQ(router_.Find("id-1"), nullptr);
}

TEST_F(OutputRouterTest, LogprobsOfAPromptCanBeTooManyForAReader) {
  const auto slow = Live(1, 2);
  router_.OnPromptLogprobs({.request = 1},
                           std::vector<v1::PositionLogprobs>(3));
  EndStep();
  EXPECT_EQ(slow->status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(NumAborts(), 1);
}

TEST_F(OutputRouterTest, FailAllEndsEveryStream) {
  const auto one = Live(1), two = Live(2);
  absl::Notification woken;
  two->set_reader([&] { woken.Notify(); });
  EXPECT_THAT(router_.FailAll(absl::UnavailableError("gone")),
              ::testing::ElementsAre(one, two));
  v1::WorkerGenerateResponse message;
  EXPECT_EQ(one->Take(&message), Next::kEnd);
  EXPECT_EQ(two->status(), absl::UnavailableError("gone"));
  woken.WaitForNotification();
  EXPECT_TRUE(router_.Live().empty());
  // What the scheduler still says of them goes nowhere.
  router_.OnToken({.request = 1}, 5, {});
  router_.OnFinish({.request = 1}, v1::STOP, 2);
  EndStep();
}

TEST_F(OutputRouterTest, SaysOnceWhenNothingIsLive) {
  Live(1);
  int calls = 0;
  router_.WhenEmpty([&] { ++calls; });
  EndStep();
  EXPECT_EQ(calls, 0);
  router_.OnFinish({.request = 1}, v1::STOP, 2);
  EndStep();
  EndStep();
  EXPECT_EQ(calls, 1);
  router_.WhenEmpty([&] { ++calls; });
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace lockstep
