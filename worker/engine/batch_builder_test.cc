#include "worker/engine/batch_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "proto/group.pb.h"
#include "worker/core/sequence.h"
#include "worker/core/step_plan.h"
#include "worker/models/decoder.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr BatchBuilder::Limits kLimits = {
    .page_size = 4, .tokens = 16, .sequences = 3, .logits_rows = 8};

// Tokens first, first + 1, …; pages as given.
std::unique_ptr<Sequence> MakeSequence(uint32_t first, int num_tokens,
                                       std::vector<int32_t> pages) {
  auto request = std::make_shared<v1::AddRequest>();
  for (int i = 0; i < num_tokens; ++i) {
    request->add_prompt_token_ids(first + i);
  }
  auto sequence = std::make_unique<Sequence>(SequenceId{1, 0}, request);
  sequence->mutable_pages() = std::move(pages);
  return sequence;
}

template <typename T>
std::vector<T> ToVector(const T* data, int count) {
  return std::vector<T>(data, data + count);
}

TEST(BatchBuilder, PutsSpansBehindEachOther) {
  const auto prefilling = MakeSequence(100, 10, {7, 3, 5});
  const auto decoding = MakeSequence(200, 6, {1, 2});
  StepPlan plan;
  plan.spans.push_back({.sequence = prefilling.get(), .begin = 4, .count = 3});
  plan.spans.push_back(
      {.sequence = decoding.get(), .begin = 5, .count = 1, .samples = true});
  BatchBuilder builder(kLimits);
  builder.Build(plan);

  const DecoderInput input = builder.input();
  EXPECT_THAT(input.token_ids, ElementsAre(104, 105, 106, 205));
  ASSERT_EQ(input.batch.num_tokens, 4);
  EXPECT_THAT(ToVector(input.batch.positions, 4), ElementsAre(4, 5, 6, 5));
  EXPECT_THAT(ToVector(input.batch.sequence_of, 4), ElementsAre(0, 0, 0, 1));
  EXPECT_EQ(input.batch.page_tables[0], prefilling->pages().data());
  EXPECT_EQ(input.batch.page_tables[1], decoding->pages().data());
  EXPECT_THAT(input.logits_tokens, ElementsAre(3));
  ASSERT_EQ(builder.rows().size(), 1);
  EXPECT_EQ(builder.rows()[0].span, 1);
  EXPECT_EQ(builder.rows()[0].position, 5);
  EXPECT_FALSE(builder.rows()[0].is_prompt);
}

TEST(BatchBuilder, ChunkWithoutLogitsHasNoRows) {
  const auto sequence = MakeSequence(0, 10, {0, 1, 2});
  StepPlan plan;
  plan.spans.push_back({.sequence = sequence.get(), .begin = 0, .count = 8});
  BatchBuilder builder(kLimits);
  builder.Build(plan);
  EXPECT_THAT(builder.input().logits_tokens, IsEmpty());
  EXPECT_THAT(builder.rows(), IsEmpty());
}

TEST(BatchBuilder, PromptRowsComeBeforeTheSampledOne) {
  const auto first = MakeSequence(0, 3, {0});
  const auto second = MakeSequence(50, 6, {1, 2});
  StepPlan plan;
  plan.spans.push_back(
      {.sequence = first.get(), .begin = 2, .count = 1, .samples = true});
  plan.spans.push_back({.sequence = second.get(),
                        .begin = 2,
                        .count = 4,
                        .samples = true,
                        .prompt_logits_begin = 3,
                        .prompt_logits_end = 5});
  BatchBuilder builder(kLimits);
  builder.Build(plan);
  //   batch    first 2 | second 2 3 4 5
  //   index          0 |        1 2 3 4
  EXPECT_THAT(builder.input().logits_tokens, ElementsAre(0, 2, 3, 4));
  std::vector<int> prompt_positions, sampled_positions;
  for (const LogitsRow& row : builder.rows()) {
    (row.is_prompt ? prompt_positions : sampled_positions)
        .push_back(row.position);
  }
  EXPECT_THAT(prompt_positions, ElementsAre(3, 4));
  EXPECT_THAT(sampled_positions, ElementsAre(2, 5));
}

TEST(BatchBuilder, ForgetsTheStepBefore) {
  const auto sequence = MakeSequence(0, 4, {0});
  StepPlan plan;
  plan.spans.push_back(
      {.sequence = sequence.get(), .begin = 0, .count = 4, .samples = true});
  BatchBuilder builder(kLimits);
  builder.Build(plan);
  builder.Build(plan);
  EXPECT_EQ(builder.input().token_ids.size(), 4);
  EXPECT_EQ(builder.rows().size(), 1);
}

TEST(BatchBuilderDeathTest, RefusesAPlanBeyondItsLimits) {
  const auto sequence = MakeSequence(0, 9, {0, 1});
  StepPlan plan;
  plan.spans.push_back({.sequence = sequence.get(), .begin = 0, .count = 9});
  BatchBuilder builder(kLimits);
  EXPECT_DEATH(builder.Build(plan), "pages");
}

}  // namespace
}  // namespace lockstep
