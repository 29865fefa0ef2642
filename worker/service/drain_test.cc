#include "worker/service/drain.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/testing/router_step.h"

namespace lockstep {
namespace {

class DrainTest : public ::testing::Test {
 protected:
  DrainTest() { admission_.Open(); }

  // The kinds of the messages that wait, as letters: add, abort (x), stop.
  std::string Drained() {
    std::vector<std::string> messages;
    EXPECT_TRUE(inbox_.Drain(/*idle=*/false, 1000, &messages).ok());
    std::string kinds;
    for (const std::string& bytes : messages) {
      v1::RankMessage message;
      EXPECT_TRUE(message.ParseFromString(bytes));
      kinds += message.has_add() ? 'a' : message.has_abort() ? 'x' : 's';
    }
    return kinds;
  }

  void Finish(uint64_t request, v1::FinishReason reason) {
    router_.OnFinish({.request = request}, reason, std::nullopt);
    testing::EndStepAndWait(router_);
  }

  bool serving_ = true;
  std::function<void()> after_not_serving_;
  RequestInbox inbox_{{.max_queued_requests = 10, .max_queued_tokens = 100}};
  OutputRouter router_{&inbox_};
  Admission admission_{&inbox_, &router_, OutputStream::Options()};
  Drain drain_{&admission_, &router_, &inbox_, [this] {
                 serving_ = false;
                 if (after_not_serving_) after_not_serving_();
               }};
};

TEST_F(DrainTest, AnIdleGroupStopsAtOnce) {
  drain_.Begin();
  EXPECT_FALSE(serving_);
  EXPECT_EQ(admission_.Submit("", {}).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(Drained(), "s");
}

TEST_F(DrainTest, TheStopComesAfterTheLastRequest) {
  const auto one = *admission_.Submit("", {});
  const auto two = *admission_.Submit("", {});
  drain_.Begin();
  Finish(1, v1::STOP);
  EXPECT_EQ(Drained(), "aa");
  Finish(2, v1::LENGTH);
  EXPECT_EQ(Drained(), "s");
  EXPECT_TRUE(one->status().ok());
  EXPECT_TRUE(two->status().ok());
}

TEST_F(DrainTest, AWarmUpThatEndsMeanwhileDoesNotServe) {
  // What a leader does at the end of its warm-up, in the midst of Begin.
  after_not_serving_ = [this] {
    serving_ = true;
    if (!admission_.Open()) serving_ = false;
  };
  drain_.Begin();
  EXPECT_FALSE(serving_);
}

TEST_F(DrainTest, HurryEndsTheCallOfAnEndedRequestTooSoThatNobodyWaits) {
  const auto stream = *admission_.Submit("", {});
  drain_.Begin();
  Finish(1, v1::STOP);  // its client has not read it
  drain_.Hurry();
  admission_.WaitForCalls();
  EXPECT_EQ(stream->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Drained(), "as");
}

TEST_F(DrainTest, HurryEndsWhatIsLive) {
  const auto stream = *admission_.Submit("", {});
  drain_.Begin();
  drain_.Hurry();
  EXPECT_EQ(stream->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Drained(), "ax");
  Finish(1, v1::ABORTED);
  EXPECT_EQ(Drained(), "s");
}

}  // namespace
}  // namespace lockstep
