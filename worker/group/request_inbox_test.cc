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

v1::Grammar GrammarOf(size_t bytes) {
  v1::Grammar grammar;
  grammar.set_regex(std::string(bytes, 'a'));
  return grammar;
}

TEST(RequestInbox, AGrammarReleasedBeforeAnyRankWasToldLeavesNothing) {
  RequestInbox inbox({.max_queued_requests = 10, .max_queued_tokens = 100});
  inbox.Prepare(1, GrammarOf(5));
  ASSERT_TRUE(inbox.Add(Request(1, 1)).ok());
  inbox.Prepare(2, GrammarOf(5));
  inbox.Prepare(3, GrammarOf(5));
  EXPECT_FALSE(inbox.ReleaseGrammar(2));
  auto messages = Drained(inbox, 2);
  ASSERT_EQ(messages.size(), 2);
  EXPECT_EQ(messages[0].prepare_grammar().number(), 1);
  EXPECT_EQ(messages[1].add().request(), 1);
  EXPECT_TRUE(inbox.ReleaseGrammar(1));  // which ranks know
  messages = Drained(inbox);
  ASSERT_EQ(messages.size(), 2);
  EXPECT_EQ(messages[0].prepare_grammar().number(), 3);
  EXPECT_EQ(messages[1].release_grammar().number(), 1);
}

TEST(RequestInbox, OfGrammarsOnlySoManyBytesWait) {
  RequestInbox inbox({.max_queued_requests = 10,
                      .max_queued_tokens = 100,
                      .max_grammar_bytes = 1000});
  int waiting = 0;
  for (; inbox.CheckGrammarRoom(GrammarOf(100)).ok(); ++waiting) {
    ASSERT_LT(waiting, 10);
    inbox.Prepare(1 + waiting, GrammarOf(100));
  }
  EXPECT_GE(waiting, 8);
  const absl::Status refused = inbox.CheckGrammarRoom(GrammarOf(100));
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrorReasonOf(refused), "OVERLOADED");
  EXPECT_TRUE(RetryDelayOf(refused).has_value());
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the limit is 1000"));
  // Room comes by a release as by a step.
  EXPECT_FALSE(inbox.ReleaseGrammar(1));
  EXPECT_TRUE(inbox.CheckGrammarRoom(GrammarOf(100)).ok());
  EXPECT_EQ(Drained(inbox).size(), waiting - 1);
  EXPECT_TRUE(inbox.CheckGrammarRoom(GrammarOf(990)).ok());
}

TEST(RequestInbox, WhatAddWouldSayIsKnownBefore) {
  RequestInbox inbox({.max_queued_requests = 2, .max_queued_tokens = 100});
  EXPECT_TRUE(inbox.CheckRoom(Request(1, 100)).ok());
  EXPECT_EQ(ErrorReasonOf(inbox.CheckRoom(Request(1, 101))),
            "QUEUE_FULL_TOKENS");
  for (int i = 1; i <= 2; ++i) ASSERT_TRUE(inbox.Add(Request(i, 1)).ok());
  EXPECT_EQ(ErrorReasonOf(inbox.CheckRoom(Request(3, 1))),
            "QUEUE_FULL_REQUESTS");
  inbox.Close(absl::UnavailableError("gone"));
  EXPECT_EQ(inbox.CheckRoom(Request(3, 1)), absl::UnavailableError("gone"));
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
