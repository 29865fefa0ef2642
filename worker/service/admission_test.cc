#include "worker/service/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace lockstep {
namespace {

class AdmissionTest : public ::testing::Test {
 protected:
  std::vector<v1::RankMessage> Drained() {
    std::vector<std::string> bytes;
    EXPECT_TRUE(inbox_.Drain(/*idle=*/false, 10'000, &bytes).ok());
    std::vector<v1::RankMessage> messages(bytes.size());
    for (size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_TRUE(messages[i].ParseFromString(bytes[i]));
    }
    return messages;
  }

  RequestInbox inbox_{{.max_queued_requests = 1000, .max_queued_tokens = 1000}};
  OutputRouter router_{&inbox_};
  Admission admission_{&inbox_, &router_, OutputStream::Options()};
};

TEST_F(AdmissionTest, IsClosedUntilOpenedAndOnceItWasClosed) {
  EXPECT_EQ(admission_.Submit("a", {}).status(),
            absl::UnavailableError("the worker is starting."));
  EXPECT_TRUE(admission_.SubmitAnyway("warm-up", {}).ok());
  EXPECT_TRUE(admission_.Open());
  EXPECT_TRUE(admission_.Submit("a", {}).ok());
  admission_.Close("draining.");
  EXPECT_EQ(admission_.Submit("b", {}).status(),
            absl::UnavailableError("draining."));
  EXPECT_FALSE(admission_.Open());
}

TEST_F(AdmissionTest, NumbersCountUpInTheOrderOfTheInbox) {
  admission_.Open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE(admission_.Submit("", {}).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto messages = Drained();
  ASSERT_EQ(messages.size(), 400);
  for (size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(messages[i].add().request(), i + 1);
  }
}

TEST_F(AdmissionTest, ARefusedRequestLeavesNothingBehind) {
  admission_.Open();
  v1::AddRequest large;
  for (int i = 0; i < 1001; ++i) large.add_prompt_token_ids(1);
  EXPECT_EQ(admission_.Submit("a", large).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(router_.Find("a"), nullptr);
  EXPECT_EQ((*admission_.Submit("a", {}))->number(), 1);
  EXPECT_EQ(admission_.Submit("a", {}).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ((*admission_.Submit("b", {}))->number(), 2);
}

TEST_F(AdmissionTest, AnAbortDoesNotOvertakeItsRequest) {
  admission_.Open();
  for (int i = 0; i < 300; ++i) {
    std::thread aborter([this] {
      std::shared_ptr<OutputStream> stream;
      while ((stream = router_.Find("a")) == nullptr) {
      }
      admission_.Abort(*stream, {}, v1::ABORT_CALL);
    });
    const auto stream = *admission_.Submit("a", {});
    aborter.join();
    const auto messages = Drained();
    ASSERT_EQ(messages.size(), 2);
    EXPECT_TRUE(messages[0].has_add());
    inbox_.Release(stream->request());
    router_.Unregister(*stream);
  }
}

TEST_F(AdmissionTest, ACallIsOpenUntilItLeaves) {
  admission_.Open();
  const auto one = *admission_.Submit("a", {}),
             two = *admission_.Submit("b", {});
  EXPECT_TRUE(admission_.SubmitAnyway("warm-up", {}).ok());  // nobody's
  admission_.Close("draining.");
  admission_.Leave(*one);
  std::atomic<bool> has_left = false;
  std::thread client([&] {
    has_left = true;
    admission_.Leave(*two);
  });
  admission_.WaitForCalls();
  EXPECT_TRUE(has_left);
  client.join();
}

TEST_F(AdmissionTest, EndCallsEndsTheWaitForThem) {
  admission_.Open();
  const auto stream = *admission_.Submit("a", {});
  admission_.Close("draining.");
  int wakes = 0;
  stream->set_reader([&] { ++wakes; });
  std::thread hurry(
      [&] { admission_.EndCalls(absl::UnavailableError("too slow")); });
  admission_.WaitForCalls();
  hurry.join();
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(stream->status(), absl::UnavailableError("too slow"));
}

TEST_F(AdmissionTest, AnAbortIsAMessageWithItsChoicesAndCause) {
  admission_.Open();
  const auto stream = *admission_.Submit("a", {});
  const uint32_t choices[] = {1, 3};
  admission_.Abort(*stream, choices, v1::ABORT_CALL);
  const auto messages = Drained();
  ASSERT_EQ(messages.size(), 2);
  EXPECT_EQ(messages[1].abort().request(), 1);
  EXPECT_THAT(messages[1].abort().choices(), ::testing::ElementsAre(1, 3));
  EXPECT_EQ(messages[1].abort().cause(), v1::ABORT_CALL);
}

}  // namespace
}  // namespace lockstep
