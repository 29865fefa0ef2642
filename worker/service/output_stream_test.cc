#include "worker/service/output_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/metrics/histogram.h"
#include "worker/service/request_meters.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Next = OutputStream::Next;

std::shared_ptr<v1::AddRequest> Request(uint32_t n = 1) {
  auto request = std::make_shared<v1::AddRequest>();
  request->set_request(7);
  for (uint32_t id : {10, 11, 12}) request->add_prompt_token_ids(id);
  request->mutable_sampling()->set_n(n);
  request->mutable_sampling()->set_seed(99);
  return request;
}

// A stream whose `accepted` was taken already.
class Started {
 public:
  explicit Started(uint32_t n = 1, int max_buffered_positions = 100)
      : stream("id", Request(n),
               {.max_buffered_positions = max_buffered_positions}) {
    EXPECT_EQ(stream.Take(&message), Next::kMessage);
    EXPECT_TRUE(message.has_accepted());
  }

  void ExpectNext(Next next) { EXPECT_EQ(stream.Take(&message), next); }

  OutputStream stream;
  v1::WorkerGenerateResponse message;
};

v1::PositionLogprobs LogprobsOf(uint32_t token) {
  v1::PositionLogprobs logprobs;
  logprobs.mutable_token()->set_token_id(token);
  return logprobs;
}

TEST(OutputStream, BeginsWithAccepted) {
  OutputStream stream("id", Request(), {});
  v1::WorkerGenerateResponse message;
  ASSERT_EQ(stream.Take(&message), Next::kMessage);
  EXPECT_EQ(message.accepted().request_id(), "id");
  EXPECT_EQ(message.accepted().prompt_tokens(), 3);
  EXPECT_EQ(message.accepted().seed(), 99);
  EXPECT_EQ(stream.Take(&message), Next::kNothing);
}

TEST(OutputStream, ADeltaHasAllTokensSinceTheLastOne) {
  Started s;
  EXPECT_TRUE(s.stream.OnToken(0, 1, {}).ok());
  EXPECT_TRUE(s.stream.OnToken(0, 2, {}).ok());
  s.ExpectNext(Next::kMessage);
  EXPECT_THAT(s.message.delta().token_ids(), ElementsAre(1, 2));
  s.ExpectNext(Next::kNothing);
  EXPECT_TRUE(s.stream.OnToken(0, 3, {}).ok());
  s.ExpectNext(Next::kMessage);
  EXPECT_THAT(s.message.delta().token_ids(), ElementsAre(3));
}

TEST(OutputStream, EachChoiceFinishesAfterItsTokensAndTheSummaryIsLast) {
  Started s(2);
  s.stream.OnFirstScheduled(2);
  EXPECT_TRUE(s.stream.OnToken(1, 21, {}).ok());
  EXPECT_TRUE(s.stream.OnToken(0, 11, {}).ok());
  EXPECT_FALSE(s.stream.OnFinish(1, v1::STOP, 5));
  s.ExpectNext(Next::kMessage);
  EXPECT_EQ(s.message.delta().index(), 0);
  s.ExpectNext(Next::kMessage);
  EXPECT_EQ(s.message.delta().index(), 1);
  s.ExpectNext(Next::kMessage);
  EXPECT_EQ(s.message.finish().index(), 1);
  EXPECT_EQ(s.message.finish().reason(), v1::STOP);
  EXPECT_EQ(s.message.finish().stop_token_id(), 5);
  EXPECT_EQ(s.message.finish().usage().prompt_tokens(), 3);
  EXPECT_EQ(s.message.finish().usage().cached_tokens(), 2);
  EXPECT_EQ(s.message.finish().usage().completion_tokens(), 1);
  s.ExpectNext(Next::kNothing);
  EXPECT_TRUE(s.stream.OnFinish(0, v1::LENGTH, std::nullopt));
  s.ExpectNext(Next::kMessage);
  EXPECT_FALSE(s.message.finish().has_stop_token_id());
  s.ExpectNext(Next::kMessage);
  EXPECT_EQ(s.message.summary().usage().completion_tokens(), 2);
  EXPECT_EQ(s.message.summary().usage().prompt_tokens(), 3);
  s.ExpectNext(Next::kEnd);
  EXPECT_TRUE(s.stream.status().ok());
}

TEST(OutputStream, PromptLogprobsComeBeforeTheFirstToken) {
  Started s;
  EXPECT_TRUE(s.stream.OnPromptLogprobs({LogprobsOf(11)}).ok());
  s.ExpectNext(Next::kMessage);
  EXPECT_EQ(s.message.delta().prompt_logprobs_size(), 1);
  EXPECT_TRUE(s.stream.OnPromptLogprobs({LogprobsOf(12)}).ok());
  EXPECT_TRUE(s.stream.OnToken(0, 1, {LogprobsOf(1)}).ok());
  s.ExpectNext(Next::kMessage);
  EXPECT_EQ(s.message.delta().prompt_logprobs_size(), 1);
  EXPECT_EQ(s.message.delta().logprobs_size(), 1);
  s.ExpectNext(Next::kNothing);
}

// 64 MiB is the most a message may have; a long prompt's log-probabilities are
// more.
TEST(OutputStream, PositionsThatAreManyComeInSeveralMessages) {
  constexpr int kMost = OutputStream::kMaxPositionsOfMessage;
  Started s(1, 5 * kMost);
  std::vector<v1::PositionLogprobs> prompt;
  for (uint32_t i = 0; i < 2 * kMost + 7; ++i) prompt.push_back(LogprobsOf(i));
  EXPECT_TRUE(s.stream.OnPromptLogprobs(prompt).ok());
  for (uint32_t i = 0; i < 2 * kMost; ++i) {
    EXPECT_TRUE(s.stream.OnToken(0, i, {}).ok());
  }
  s.stream.OnFinish(0, v1::LENGTH, std::nullopt);
  uint32_t next_position = 0, next_token = 0;
  while (s.stream.Take(&s.message) == Next::kMessage && s.message.has_delta()) {
    const v1::TokenDelta& delta = s.message.delta();
    EXPECT_LE(delta.prompt_logprobs_size() + delta.token_ids_size(), kMost);
    for (const auto& position : delta.prompt_logprobs()) {
      EXPECT_EQ(position.token().token_id(), next_position++);
    }
    for (const uint32_t token : delta.token_ids()) {
      EXPECT_EQ(next_position, prompt.size());
      EXPECT_EQ(token, next_token++);
    }
  }
  EXPECT_EQ(next_token, 2 * kMost);
  EXPECT_TRUE(s.message.has_finish());
}

TEST(OutputStream, PromptLogprobsCountAsBuffered) {
  Started s(1, 2);
  EXPECT_TRUE(s.stream.OnPromptLogprobs({LogprobsOf(1), LogprobsOf(2)}).ok());
  EXPECT_EQ(s.stream.OnToken(0, 1, {}).code(),
            absl::StatusCode::kResourceExhausted);
  Started t(1, 2);
  EXPECT_TRUE(t.stream.OnPromptLogprobs({LogprobsOf(1)}).ok());
  t.ExpectNext(Next::kMessage);
  EXPECT_TRUE(t.stream.OnPromptLogprobs({LogprobsOf(2), LogprobsOf(3)}).ok());
  EXPECT_EQ(t.stream.OnPromptLogprobs({LogprobsOf(4)}).code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(OutputStream, PromptLogprobsAreSentWithoutAnyToken) {
  Started s;
  EXPECT_TRUE(s.stream.OnPromptLogprobs({LogprobsOf(11)}).ok());
  s.stream.OnFinish(0, v1::STOP, 2);
  s.ExpectNext(Next::kMessage);
  EXPECT_EQ(s.message.delta().prompt_logprobs_size(), 1);
  s.ExpectNext(Next::kMessage);
  EXPECT_TRUE(s.message.has_finish());
}

TEST(OutputStream, AWakeIsClaimedOnce) {
  Started s;
  EXPECT_TRUE(s.stream.ClaimWake());
  EXPECT_FALSE(s.stream.ClaimWake());
  s.stream.Wake();
  EXPECT_TRUE(s.stream.ClaimWake());
}

TEST(OutputStream, RefusesATokenBeyondItsBound) {
  Started s(1, 2);
  EXPECT_TRUE(s.stream.OnToken(0, 1, {}).ok());
  EXPECT_TRUE(s.stream.OnToken(0, 2, {}).ok());
  const absl::Status full = s.stream.OnToken(0, 3, {});
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("more than 2 tokens"));
}

TEST(OutputStream, AReaderThatKeepsUpIsNeverTooSlow) {
  Started s(1, 2);
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_TRUE(s.stream.OnToken(0, i, {}).ok());
    s.ExpectNext(Next::kMessage);
  }
}

TEST(OutputStream, AFailureDropsWhatIsBuffered) {
  Started s;
  EXPECT_TRUE(s.stream.OnToken(0, 1, {}).ok());
  s.stream.Fail(absl::UnavailableError("first"));
  s.stream.Fail(absl::InternalError("second"));
  s.ExpectNext(Next::kEnd);
  EXPECT_EQ(s.stream.status(), absl::UnavailableError("first"));
  EXPECT_TRUE(s.stream.OnToken(0, 2, {}).ok());
  s.ExpectNext(Next::kEnd);
}

TEST(OutputStream, AFailureAfterTheSummaryIsNoSecondEnd) {
  Started s;
  s.stream.OnFinish(0, v1::STOP, std::nullopt);
  s.ExpectNext(Next::kMessage);
  s.ExpectNext(Next::kMessage);
  EXPECT_TRUE(s.message.has_summary());
  s.stream.Fail(absl::DeadlineExceededError("late"));
  s.ExpectNext(Next::kEnd);
  EXPECT_TRUE(s.stream.status().ok());
}

TEST(OutputStream, ResumedTokensCountAsOutputAndAreNotSent) {
  auto request = Request();
  request->add_resume_token_ids(1);
  request->add_resume_token_ids(2);
  OutputStream stream("id", request, {});
  v1::WorkerGenerateResponse message;
  stream.Take(&message);
  EXPECT_TRUE(stream.OnToken(0, 3, {}).ok());
  stream.Take(&message);
  EXPECT_THAT(message.delta().token_ids(), ElementsAre(3));
  stream.OnFinish(0, v1::LENGTH, std::nullopt);
  stream.Take(&message);
  EXPECT_EQ(message.finish().usage().completion_tokens(), 3);
}

TEST(OutputStream, OfAChoiceThatHadEndedNothingIsSent) {
  auto request = Request();
  request->mutable_sampling()->set_n(2);
  request->add_resume_token_ids(1);
  request->add_resume_token_counts(0);
  request->add_resume_token_counts(1);
  request->add_ended_choices(0);
  OutputStream stream("id", request, {});
  EXPECT_FALSE(stream.OnFinish(0, v1::ABORTED, std::nullopt));
  EXPECT_TRUE(stream.OnFinish(1, v1::LENGTH, std::nullopt));
  v1::WorkerGenerateResponse message;
  EXPECT_EQ(stream.Take(&message), Next::kMessage);
  EXPECT_TRUE(message.has_accepted());
  EXPECT_EQ(stream.Take(&message), Next::kMessage);
  EXPECT_EQ(message.finish().index(), 1);
  EXPECT_EQ(message.finish().usage().completion_tokens(), 1);
  EXPECT_EQ(stream.Take(&message), Next::kMessage);
  EXPECT_TRUE(message.has_summary());
}

TEST(OutputStream, AnEmbeddingIsInPlaceOfTheFinish) {
  Started s;
  s.stream.OnEmbedding({0.5f, -1.0f});
  EXPECT_TRUE(s.stream.OnFinish(0, v1::STOP, std::nullopt));
  s.ExpectNext(Next::kMessage);
  EXPECT_THAT(s.message.embedding().values(), ElementsAre(0.5f, -1.0f));
  s.ExpectNext(Next::kMessage);
  EXPECT_TRUE(s.message.has_summary());
  s.ExpectNext(Next::kEnd);
}

TEST(OutputStream, TheLogLineHasNumbersAndTheEnd) {
  Started s;
  s.stream.OnFirstScheduled(2);
  EXPECT_TRUE(s.stream.OnToken(0, 1, {}).ok());
  s.stream.OnFinish(0, v1::ABORTED, std::nullopt);
  s.stream.set_abort_cause(v1::DEADLINE, /*of_all=*/true);
  const std::string line = s.stream.Description();
  EXPECT_THAT(line, HasSubstr("request id prompt_tokens=3 cached_tokens=2 "
                              "completion_tokens=1 first_token_ms="));
  EXPECT_THAT(line, HasSubstr("finish=ABORTED cause=DEADLINE"));
}

TEST(OutputStream, AllTokensArriveOnceAcrossThreads) {
  constexpr uint32_t kTokens = 20'000;
  OutputStream stream("id", Request(), {.max_buffered_positions = kTokens});
  absl::Mutex mutex;
  bool woken = true;
  stream.set_reader([&] {
    absl::MutexLock lock(&mutex);
    woken = true;
  });
  std::thread writer([&] {
    for (uint32_t i = 0; i < kTokens; ++i) {
      EXPECT_TRUE(stream.OnToken(0, i, {}).ok());
      stream.Wake();
    }
    stream.OnFinish(0, v1::LENGTH, std::nullopt);
    stream.Wake();
  });
  uint32_t expected = 0;
  v1::WorkerGenerateResponse message;
  for (bool ended = false; !ended;) {
    {
      absl::MutexLock lock(&mutex);
      mutex.Await(absl::Condition(&woken));
      woken = false;
    }
    Next next;
    while ((next = stream.Take(&message)) == Next::kMessage) {
      for (uint32_t token : message.delta().token_ids()) {
        EXPECT_EQ(token, expected++);
      }
    }
    ended = next == Next::kEnd;
  }
  EXPECT_EQ(expected, kTokens);
  stream.set_reader(nullptr);
  writer.join();
}

uint64_t CountOf(const Histogram& histogram) {
  uint64_t count = 0;
  for (const uint64_t bucket : histogram.Read().counts) count += bucket;
  return count;
}

TEST(OutputStream, MetersWhatBecomesOfTheRequest) {
  RequestMeters meters;
  OutputStream stream("id", Request(2), {.meters = &meters});
  stream.OnFirstScheduled(/*cached_tokens=*/2);
  for (const uint32_t choice : {0, 1, 0, 0}) {
    EXPECT_TRUE(stream.OnToken(choice, 5, {}).ok());
  }
  stream.OnFinish(1, v1::STOP, 5);
  EXPECT_EQ(CountOf(meters.total), 0);  // the other choice goes on
  stream.OnFinish(0, v1::LENGTH, std::nullopt);
  EXPECT_EQ(meters.prompted, 3);
  EXPECT_EQ(meters.cached, 2);
  EXPECT_EQ(meters.generated, 4);
  EXPECT_EQ(meters.stopped, 1);
  EXPECT_EQ(meters.cut, 1);
  EXPECT_EQ(meters.aborted, 0);
  EXPECT_EQ(CountOf(meters.first_token), 1);
  EXPECT_EQ(CountOf(meters.token), 2);       // both of choice 0
  EXPECT_EQ(CountOf(meters.mean_token), 1);  // one token has no mean
  EXPECT_EQ(meters.generated_tokens.Read().sum, 4);
  for (const Histogram* of_request :
       {&meters.queued, &meters.prefill, &meters.decode, &meters.computed,
        &meters.total, &meters.prompt_tokens}) {
    EXPECT_EQ(CountOf(*of_request), 1);
  }
}

TEST(OutputStream, WhatAnEarlierCallProducedIsNotMeteredAgain) {
  RequestMeters meters;
  const auto request = Request(2);
  for (const uint32_t token : {7, 8}) {
    request->add_resume_token_ids(token);
    request->add_resume_token_counts(1);
  }
  request->add_ended_choices(0);
  OutputStream stream("id", request, {.meters = &meters});
  stream.OnFirstScheduled(0);
  EXPECT_TRUE(stream.OnToken(1, 9, {}).ok());
  stream.OnFinish(0, v1::STOP, std::nullopt);
  stream.OnFinish(1, v1::LENGTH, std::nullopt);
  EXPECT_EQ(meters.stopped, 0);
  EXPECT_EQ(meters.cut, 1);
  EXPECT_EQ(meters.generated_tokens.Read().sum, 1);
}

TEST(OutputStream, TheLogSaysWhoseItIs) {
  const OutputStream stream("id", Request(),
                            {.caller = "trace=0af7 client_request=mine"});
  EXPECT_THAT(stream.Description(),
              HasSubstr("request id trace=0af7 client_request=mine prompt"));
}

}  // namespace
}  // namespace lockstep
