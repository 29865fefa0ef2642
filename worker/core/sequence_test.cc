#include "worker/core/sequence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::shared_ptr<v1::AddRequest> Request() {
  auto request = std::make_shared<v1::AddRequest>();
  for (uint32_t id : {5, 6, 7}) request->add_prompt_token_ids(id);
  return request;
}

TEST(SequenceTest, BeginsWithItsPrompt) {
  const Sequence sequence({3, 1}, Request());
  EXPECT_EQ(sequence.id(), (SequenceId{3, 1}));
  EXPECT_THAT(sequence.tokens(), ElementsAre(5, 6, 7));
  EXPECT_THAT(sequence.output(), IsEmpty());
  EXPECT_THAT(sequence.pages(), IsEmpty());
  EXPECT_EQ(sequence.num_computed(), 0);
}

TEST(SequenceTest, ResumedTokensAreOutput) {
  auto request = Request();
  request->add_resume_token_ids(9);
  Sequence sequence({3, 0}, request);
  sequence.AppendToken(4);
  EXPECT_THAT(sequence.tokens(), ElementsAre(5, 6, 7, 9, 4));
  EXPECT_EQ(sequence.num_prompt_tokens(), 3);
  EXPECT_EQ(sequence.num_output_tokens(), 2);
  EXPECT_THAT(sequence.output(), ElementsAre(9, 4));
}

TEST(SequenceTest, EachChoiceHasItsResumedTokens) {
  auto request = Request();
  for (uint32_t id : {9, 8, 4}) request->add_resume_token_ids(id);
  for (uint32_t count : {2, 0, 1}) request->add_resume_token_counts(count);
  request->add_ended_choices(1);
  EXPECT_THAT(Sequence({3, 0}, request).output(), ElementsAre(9, 8));
  EXPECT_THAT(Sequence({3, 1}, request).output(), IsEmpty());
  EXPECT_THAT(Sequence({3, 2}, request).output(), ElementsAre(4));
  EXPECT_FALSE(HasEnded(*request, 0));
  EXPECT_TRUE(HasEnded(*request, 1));
}

TEST(SequenceTest, StaysInPlaceInReservedRoom) {
  Sequence sequence({3, 0}, Request());
  sequence.Reserve(/*num_tokens=*/8, /*num_pages=*/2);
  const uint32_t* const tokens = sequence.tokens().data();
  for (uint32_t id = 0; id < 5; ++id) sequence.AppendToken(id);
  EXPECT_EQ(sequence.tokens().data(), tokens);
}

TEST(SequenceIdTest, OrdersByRequestThenChoice) {
  EXPECT_LT((SequenceId{1, 9}), (SequenceId{2, 0}));
  EXPECT_LT((SequenceId{2, 0}), (SequenceId{2, 1}));
}

}  // namespace
}  // namespace lockstep
