#include "frontend/routing/resume_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/fake_worker.h"

namespace lockstep {
namespace {

using ::lockstep::testing::AcceptedMessage;
using ::lockstep::testing::DeltaMessage;
using ::lockstep::testing::FinishMessage;
using ::lockstep::testing::SummaryMessage;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::WorkerGenerateRequest Request(uint32_t n = 1) {
  v1::WorkerGenerateRequest request;
  request.set_request_id("r");
  for (const uint32_t id : {1, 2, 3, 4}) request.add_prompt_token_ids(id);
  if (n > 1) request.mutable_sampling()->set_n(n);
  return request;
}

v1::WorkerGenerateResponse Accepted(uint64_t seed) {
  v1::WorkerGenerateRequest request = Request();
  request.mutable_sampling()->set_seed(seed);
  return AcceptedMessage(request);
}

v1::WorkerGenerateResponse PromptLogprobs(std::vector<uint32_t> ids) {
  v1::WorkerGenerateResponse message;
  for (const uint32_t id : ids) {
    message.mutable_delta()
        ->add_prompt_logprobs()
        ->mutable_token()
        ->set_token_id(id);
  }
  return message;
}

TEST(ResumePoint, TheFirstAttemptIsTheRequestItself) {
  ResumePoint point(Request());
  EXPECT_EQ(point.NextRequest().SerializeAsString(),
            Request().SerializeAsString());
  EXPECT_EQ(point.request_id(), "r");
}

TEST(ResumePoint, AnotherGoesOnWithTokensAndSeed) {
  ResumePoint point(Request());
  point.NextRequest();
  EXPECT_NE(point.Take(Accepted(5)), nullptr);
  EXPECT_NE(point.Take(DeltaMessage(0, "a")), nullptr);
  EXPECT_NE(point.Take(DeltaMessage(0, "bc")), nullptr);
  EXPECT_TRUE(point.was_accepted());
  EXPECT_THAT(point.TakeOwed(), IsEmpty());

  const auto request = point.NextRequest();
  EXPECT_FALSE(point.was_accepted());
  EXPECT_EQ(request.request_id(), "r-2");
  EXPECT_EQ(request.sampling().seed(), 5);
  EXPECT_THAT(request.resume_token_ids(), ElementsAre('a', 'b', 'c'));
  EXPECT_THAT(request.resume_token_counts(), ElementsAre(3));
  EXPECT_THAT(request.ended_choices(), IsEmpty());
  EXPECT_EQ(point.Take(Accepted(5)), nullptr);  // the client was told
  EXPECT_TRUE(point.was_accepted());
  EXPECT_NE(point.Take(DeltaMessage(0, "d")), nullptr);

  EXPECT_THAT(point.NextRequest().resume_token_ids(),
              ElementsAre('a', 'b', 'c', 'd'));
  EXPECT_EQ(point.request_id(), "r-3");
  EXPECT_EQ(point.num_tokens(), 4);
}

TEST(ResumePoint, TwiceAcceptedByOneGroupIsPassedOn) {
  ResumePoint point(Request());
  point.NextRequest();
  EXPECT_NE(point.Take(Accepted(5)), nullptr);
  EXPECT_NE(point.Take(Accepted(5)), nullptr);
}

TEST(ResumePoint, EachChoiceHasItsOwnTokensAndItsEnd) {
  ResumePoint point(Request(/*n=*/3));
  point.NextRequest();
  point.Take(DeltaMessage(2, "xy"));
  point.Take(DeltaMessage(1, "q"));
  point.Take(DeltaMessage(0, "ab"));
  point.Take(FinishMessage(1, v1::STOP));
  const auto request = point.NextRequest();
  EXPECT_THAT(request.resume_token_ids(), ElementsAre('a', 'b', 'x', 'y'));
  EXPECT_THAT(request.resume_token_counts(), ElementsAre(2, 0, 2));
  EXPECT_THAT(request.ended_choices(), ElementsAre(1));
}

TEST(ResumePoint, WhatALostGroupOwedOfAbortedChoicesIsMadeUp) {
  ResumePoint point(Request(/*n=*/2));
  point.NextRequest();
  point.Take(DeltaMessage(0, "ab"));
  point.Take(DeltaMessage(1, "q"));
  point.OnAborted({0});
  const auto owed = point.TakeOwed();
  ASSERT_EQ(owed.size(), 1);
  EXPECT_EQ(owed[0].finish().index(), 0);
  EXPECT_EQ(owed[0].finish().reason(), v1::ABORTED);
  EXPECT_EQ(owed[0].finish().usage().prompt_tokens(), 4);
  EXPECT_EQ(owed[0].finish().usage().completion_tokens(), 2);
  EXPECT_FALSE(point.is_complete());
  EXPECT_THAT(point.NextRequest().ended_choices(), ElementsAre(0));
}

TEST(ResumePoint, AnAnswerThatLacksOnlyItsSummaryGetsOne) {
  ResumePoint point(Request());
  point.NextRequest();
  point.Take(DeltaMessage(0, "ab"));
  point.Take(FinishMessage(0, v1::LENGTH));
  EXPECT_FALSE(point.is_complete());
  const auto owed = point.TakeOwed();
  ASSERT_EQ(owed.size(), 1);
  EXPECT_EQ(owed[0].summary().usage().prompt_tokens(), 4);
  EXPECT_EQ(owed[0].summary().usage().cached_tokens(), 1);
  EXPECT_EQ(owed[0].summary().usage().completion_tokens(), 2);
  EXPECT_TRUE(point.is_complete());
  EXPECT_THAT(point.TakeOwed(), IsEmpty());
}

TEST(ResumePoint, OfACompleteAnswerNothingIsOwed) {
  ResumePoint point(Request());
  point.NextRequest();
  point.Take(FinishMessage(0, v1::LENGTH));
  point.Take(SummaryMessage());
  EXPECT_TRUE(point.is_complete());
  EXPECT_THAT(point.TakeOwed(), IsEmpty());
}

TEST(ResumePoint, PromptLogprobsThatComeAgainAreLeftOut) {
  v1::WorkerGenerateRequest request = Request();
  request.mutable_sampling()->set_prompt_logprobs(0);
  ResumePoint point(request);
  point.NextRequest();
  EXPECT_NE(point.Take(PromptLogprobs({2, 3})), nullptr);
  EXPECT_TRUE(point.NextRequest().sampling().has_prompt_logprobs());
  EXPECT_EQ(point.Take(PromptLogprobs({2})), nullptr);
  const auto* const rest = point.Take(PromptLogprobs({3, 4}));
  ASSERT_NE(rest, nullptr);
  ASSERT_EQ(rest->delta().prompt_logprobs_size(), 1);
  EXPECT_EQ(rest->delta().prompt_logprobs(0).token().token_id(), 4);
  // All three have come: they are not asked for any more.
  EXPECT_FALSE(point.NextRequest().sampling().has_prompt_logprobs());
}

TEST(ResumePoint, ChoicesNobodyAskedForAreTheListenersToRefuse) {
  ResumePoint point(Request());
  point.NextRequest();
  EXPECT_NE(point.Take(DeltaMessage(7, "a")), nullptr);
  EXPECT_NE(point.Take(FinishMessage(7, v1::STOP)), nullptr);
  point.OnAborted({7});
  EXPECT_EQ(point.num_tokens(), 0);
}

TEST(ResumePoint, AnEmbeddingIsAskedForAgainAsItWas) {
  v1::WorkerGenerateRequest request = Request();
  request.mutable_embedding()->set_dimensions(3);
  ResumePoint point(request);
  point.NextRequest();
  point.Take(AcceptedMessage(request));
  EXPECT_THAT(point.TakeOwed(), IsEmpty());
  v1::WorkerGenerateRequest again = point.NextRequest();
  EXPECT_EQ(again.request_id(), "r-2");
  again.set_request_id("r");
  EXPECT_EQ(again.SerializeAsString(), request.SerializeAsString());
}

TEST(ResumePoint, AnEmbeddingThatCameIsOwedTheSummaryAlone) {
  v1::WorkerGenerateRequest request = Request();
  request.mutable_embedding();
  ResumePoint point(request);
  point.NextRequest();
  point.Take(AcceptedMessage(request));
  v1::WorkerGenerateResponse message;
  message.mutable_embedding()->add_values(1);
  EXPECT_EQ(point.Take(message), &message);
  const auto owed = point.TakeOwed();
  ASSERT_EQ(owed.size(), 1);
  EXPECT_EQ(owed[0].summary().usage().prompt_tokens(), 4);
  EXPECT_TRUE(point.is_complete());
}

}  // namespace
}  // namespace lockstep
