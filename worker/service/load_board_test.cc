#include "worker/service/load_board.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "proto/group.pb.h"
#include "worker/group/request_inbox.h"

namespace lockstep {
namespace {

TEST(LoadBoard, CountsWhatTheSchedulerHasNotBeenToldOf) {
  RequestInbox inbox({.max_queued_requests = 10, .max_queued_tokens = 100});
  LoadBoard board(&inbox);
  board.Publish({.running_sequences = 3,
                 .waiting_sequences = 2,
                 .waiting_tokens = 50,
                 .total_pages = 8,
                 .step = 7});
  v1::AddRequest request;
  for (int i = 0; i < 10; ++i) request.add_prompt_token_ids(i);
  request.mutable_sampling()->set_n(2);
  ASSERT_TRUE(inbox.Add(request).ok());
  EXPECT_EQ(board.load().waiting_sequences(), 4);
  EXPECT_EQ(board.load().waiting_tokens(), 70);

  // Its first step is over, and the next one begins.
  std::vector<std::string> messages;
  ASSERT_TRUE(inbox.Drain(/*idle=*/false, 10, &messages).ok());
  board.Publish({.running_sequences = 5});
  ASSERT_TRUE(inbox.Drain(/*idle=*/false, 10, &messages).ok());
  EXPECT_EQ(board.load().running_sequences(), 5);
  EXPECT_EQ(board.load().waiting_sequences(), 0);
  EXPECT_EQ(board.load().waiting_tokens(), 0);
}

TEST(LoadBoard, WorkIsOverdueSinceTheLastStepThatEnded) {
  RequestInbox inbox({.max_queued_requests = 10, .max_queued_tokens = 100});
  LoadBoard board(&inbox);
  const auto at = [](int seconds) {
    return LoadBoard::Clock::time_point(std::chrono::seconds(seconds));
  };
  EXPECT_EQ(board.Overdue(at(100)), absl::ZeroDuration());
  board.Publish({.running_sequences = 1}, at(100));
  EXPECT_EQ(board.Overdue(at(103)), absl::Seconds(3));
  board.Publish({.waiting_sequences = 1}, at(110));
  EXPECT_EQ(board.Overdue(at(111)), absl::Seconds(1));
  board.Publish({}, at(120));
  EXPECT_EQ(board.Overdue(at(1000)), absl::ZeroDuration());

  // One comes to an idle group, whose last step is long ago.
  v1::AddRequest request;
  request.mutable_sampling()->set_n(1);
  ASSERT_TRUE(inbox.Add(request).ok());
  EXPECT_EQ(board.Overdue(at(1001)), absl::ZeroDuration());
  EXPECT_EQ(board.Overdue(at(1005)), absl::Seconds(4));
  // A step takes it and hangs.
  std::vector<std::string> messages;
  ASSERT_TRUE(inbox.Drain(/*idle=*/false, 10, &messages).ok());
  EXPECT_EQ(board.Overdue(at(1010)), absl::Seconds(9));
}

// Seen or not, an end between two questions is one.
TEST(LoadBoard, WorkThatEndedAndCameAgainIsNotOverdue) {
  RequestInbox inbox({.max_queued_requests = 10, .max_queued_tokens = 100});
  LoadBoard board(&inbox);
  const auto at = [](int seconds) {
    return LoadBoard::Clock::time_point(std::chrono::seconds(seconds));
  };
  board.Publish({.running_sequences = 1}, at(100));
  EXPECT_EQ(board.Overdue(at(100)), absl::ZeroDuration());
  board.Publish({}, at(101));
  v1::AddRequest request;
  request.mutable_sampling()->set_n(1);
  ASSERT_TRUE(inbox.Add(request).ok());
  EXPECT_EQ(board.Overdue(at(110)), absl::ZeroDuration());
}

}  // namespace
}  // namespace lockstep
