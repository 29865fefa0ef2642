#include "worker/group/request_inbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/error_reason.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr size_t kNoLimit = 1000;

v1::AddRequest Request(uint64_t number, int prompt_tokens) {
  v1::AddRequest request;
  request.set_request(number);
  for (int i = 0; i < prompt_tokens; ++i) request.add_prompt_token_ids(i);
  return request;
}

v1::AbortSequences AbortOf(uint64_t request,
                           const std::vector<uint32_t>& choices = {}) {
  v1::AbortSequences abort;
  abort.set_request(request);
  for (const uint32_t choice : choices) abort.add_choices(choice);
  return abort;
}

std::vector<v1::RankMessage> Drained(RequestInbox& inbox,
                                     size_t max_messages = kNoLimit) {
  std::vector<std::string> bytes;
  EXPECT_TRUE(inbox.Drain(/*idle=*/false, max_messages, &bytes).ok());
  std::vector<v1::RankMessage> messages(bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_TRUE(messages[i].ParseFromString(bytes[i]));
  }
  return messages;
}

TEST(RequestInbox, KeepsTheOrderOfArrival) {
  RequestInbox inbox({.max_queued_requests = 10, .max_queued_tokens = 100});
  ASSERT_TRUE(inbox.Add(Request(1, 3)).ok());
  inbox.Abort(AbortOf(1));
  ASSERT_TRUE(inbox.Add(Request(2, 3)).ok());
  const auto messages = Drained(inbox);
  ASSERT_EQ(messages.size(), 3);
  EXPECT_EQ(messages[0].add().request(), 1);
  EXPECT_EQ(messages[1].abort().request(), 1);
  EXPECT_EQ(messages[2].add().request(), 2);
  EXPECT_TRUE(Drained(inbox).empty());
}

TEST(RequestInbox, DrainsNoMoreThanAFrameHolds) {
  RequestInbox inbox({.max_queued_requests = 10, .max_queued_tokens = 100});
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(inbox.Add(Request(i, 1)).ok());
  EXPECT_EQ(Drained(inbox, 2).size(), 2);
  EXPECT_EQ(Drained(inbox, 2).size(), 1);
}

TEST(RequestInbox, RefusesRequestsAboveTheLimitUntilOneIsReleased) {
  RequestInbox inbox({.max_queued_requests = 2, .max_queued_tokens = 100});
  ASSERT_TRUE(inbox.Add(Request(1, 1)).ok());
  ASSERT_TRUE(inbox.Add(Request(2, 1)).ok());
  const absl::Status refused = inbox.Add(Request(3, 1));
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("--max_queued_requests is 2"));
  EXPECT_EQ(ErrorReasonOf(refused), "QUEUE_FULL_REQUESTS");
  EXPECT_EQ(RetryDelayOf(refused), QueuePace::kUnknown);

  // What the scheduler holds but has not begun still waits.
  EXPECT_EQ(Drained(inbox).size(), 2);
  EXPECT_FALSE(inbox.Add(Request(3, 1)).ok());
  inbox.Release(Request(1, 1));
  EXPECT_TRUE(inbox.Add(Request(3, 1)).ok());
  EXPECT_GE(*RetryDelayOf(inbox.Add(Request(4, 1))), QueuePace::kLeast);
}

TEST(RequestInbox, RefusesPromptTokensAboveTheLimit) {
  RequestInbox inbox({.max_queued_requests = 10, .max_queued_tokens = 100});
  ASSERT_TRUE(inbox.Add(Request(1, 60)).ok());
  const absl::Status refused = inbox.Add(Request(2, 41));
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("60 prompt tokens wait, the request has 41 and "
                        "--max_queued_tokens is 100"));
  EXPECT_EQ(ErrorReasonOf(refused), "QUEUE_FULL_TOKENS");
  EXPECT_EQ(RetryDelayOf(refused), QueuePace::kUnknown);
  EXPECT_TRUE(inbox.Add(Request(2, 40)).ok());
  EXPECT_FALSE(inbox.Add(Request(3, 1)).ok());
  inbox.Release(Request(1, 60));
  EXPECT_TRUE(inbox.Add(Request(3, 60)).ok());
}

TEST(RequestInbox, WhatWaitsIsKnownUntilTheStepAfterTheOneThatTakesIt) {
  RequestInbox inbox({.max_queued_requests = 10, .max_queued_tokens = 100});
  v1::AddRequest request = Request(1, 10);
  request.mutable_sampling()->set_n(3);
  ASSERT_TRUE(inbox.Add(request).ok());
  inbox.Abort(AbortOf(1));
  ASSERT_TRUE(inbox.Add(Request(2, 5)).ok());
  EXPECT_EQ(inbox.waiting().sequences, 4);
  EXPECT_EQ(inbox.waiting().tokens, 35);
  EXPECT_EQ(Drained(inbox, 2).size(), 2);
  EXPECT_EQ(inbox.waiting().sequences, 4);
  EXPECT_EQ(Drained(inbox, 2).size(), 1);
  EXPECT_EQ(inbox.waiting().sequences, 1);
  EXPECT_EQ(inbox.waiting().tokens, 5);
  EXPECT_EQ(Drained(inbox, 2).size(), 0);
  EXPECT_EQ(inbox.waiting().sequences, 0);
  EXPECT_EQ(inbox.waiting().tokens, 0);
}

TEST(RequestInbox, AFrameTakesNoMoreBytesThanItHolds) {
  // A token takes five bytes: 40 MB each.
  constexpr int kTokens = 8'000'000;
  RequestInbox inbox(
      {.max_queued_requests = 10, .max_queued_tokens = 10 * int64_t{kTokens}});
  v1::AddRequest large;
  large.mutable_prompt_token_ids()->Resize(kTokens, 0xffff'ffff);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(inbox.Add(large).ok());
  EXPECT_EQ(Drained(inbox).size(), 3);
  EXPECT_EQ(Drained(inbox).size(), 1);
  large.mutable_prompt_token_ids()->Resize(2 * kTokens, 0xffff'ffff);
  EXPECT_THAT(std::string(inbox.Add(large).message()),
              HasSubstr("bytes between the ranks; the limit is 67108864."));
}

TEST(RequestInbox, AbortsPassAFullQueueAndWaitOnlyOnce) {
  RequestInbox inbox({.max_queued_requests = 1, .max_queued_tokens = 100});
  ASSERT_TRUE(inbox.Add(Request(1, 1)).ok());
  for (int i = 0; i < 100; ++i) inbox.Abort(AbortOf(1, {0, 1}));
  inbox.Abort(AbortOf(1, {1, 2}));
  for (int i = 0; i < 100; ++i) inbox.Abort(AbortOf(1));
  inbox.Abort(AbortOf(1, {3}));
  const auto messages = Drained(inbox);
  ASSERT_EQ(messages.size(), 4);
  EXPECT_EQ(messages[1].abort().choices_size(), 2);
  EXPECT_EQ(messages[2].abort().choices_size(), 1);
  EXPECT_EQ(messages[3].abort().choices_size(), 0);

  inbox.Abort(AbortOf(1));
  EXPECT_EQ(Drained(inbox).size(), 1);
}

TEST(RequestInbox, NothingFollowsTheStop) {
  RequestInbox inbox({.max_queued_requests = 1, .max_queued_tokens = 100});
  inbox.Stop();
  inbox.Stop();
  inbox.Abort(AbortOf(1));
  EXPECT_EQ(inbox.Add(Request(1, 1)).code(), absl::StatusCode::kUnavailable);
  const auto messages = Drained(inbox);
  ASSERT_EQ(messages.size(), 1);
  EXPECT_TRUE(messages[0].has_stop());
}

TEST(RequestInbox, AnIdleDrainWaitsForAMessage) {
  RequestInbox inbox({.max_queued_requests = 1, .max_queued_tokens = 100});
  std::thread adder([&] { EXPECT_TRUE(inbox.Add(Request(1, 1)).ok()); });
  std::vector<std::string> messages;
  EXPECT_TRUE(inbox.Drain(/*idle=*/true, kNoLimit, &messages).ok());
  EXPECT_EQ(messages.size(), 1);
  adder.join();
}

TEST(RequestInbox, CloseEndsAWaitingDrain) {
  RequestInbox inbox({.max_queued_requests = 1, .max_queued_tokens = 100});
  std::thread closer([&] { inbox.Close(absl::UnavailableError("gone")); });
  std::vector<std::string> messages;
  EXPECT_EQ(inbox.Drain(/*idle=*/true, kNoLimit, &messages),
            absl::UnavailableError("gone"));
  EXPECT_EQ(inbox.Add(Request(1, 1)), absl::UnavailableError("gone"));
  closer.join();
}

}  // namespace
}  // namespace lockstep
