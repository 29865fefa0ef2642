#include "worker/grammar/step_masks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "proto/group.pb.h"
#include "tests/testing/grammar/tiny_token_bytes.h"

namespace lockstep {
namespace {

using ::lockstep::testing::kTinyEos;
using ::lockstep::testing::TinyIds;
using ::testing::ElementsAreArray;
using ::testing::Not;

constexpr size_t kVocabSize = 512;

v1::Grammar Regex(const std::string& regex) {
  v1::Grammar grammar;
  grammar.set_regex(regex);
  return grammar;
}

std::unique_ptr<Sequence> MakeSequence(uint64_t number, uint64_t grammar) {
  auto request = std::make_shared<v1::AddRequest>();
  request->set_grammar(grammar);
  request->add_prompt_token_ids(5);
  return std::make_unique<Sequence>(SequenceId{number, 0}, request);
}

SequenceSpan Sampling(const Sequence& sequence) {
  return {.sequence = &sequence,
          .begin = sequence.num_tokens() - 1,
          .count = 1,
          .samples = true};
}

// With and without the thread: who finds a mask changes nothing.
class StepMasksTest : public ::testing::TestWithParam<bool> {
 protected:
  StepMasksTest() {
    grammars_.Prepare(1, Regex("AB*"));
    grammars_.Prepare(2, Regex("X(?s:.*)"));
    grammars_.Prepare(3, Regex("("));
  }

  // Of capitals, which no token but their own has.
  std::vector<uint32_t> Only(const std::string& bytes, bool end = false) {
    std::vector<uint32_t> mask(NumMaskWords(kVocabSize));
    std::vector<uint32_t> ids = TinyIds(bytes);
    if (end) ids.push_back(kTinyEos);
    for (const uint32_t id : ids) mask[id / 32] |= 1u << (id % 32);
    return mask;
  }

  GrammarStore grammars_{
      testing::MakeTinyTokenBytes(),
      {.vocab_size = kVocabSize, .eos_token_ids = {kTinyEos}}};
  StepMasks masks_{&grammars_,
                   {.max_spans = 8,
                    .vocab_size = kVocabSize,
                    .has_thread = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Threads, StepMasksTest, ::testing::Bool());

TEST_P(StepMasksTest, EachSpanThatChoosesHasItsMask) {
  const auto a = MakeSequence(1, 1), none = MakeSequence(2, 0),
             x = MakeSequence(3, 2), prefill = MakeSequence(4, 1);
  StepPlan plan;
  plan.spans = {Sampling(*a), Sampling(*none), Sampling(*x)};
  plan.spans.push_back({.sequence = prefill.get(), .begin = 0, .count = 1});
  masks_.Begin(plan);
  EXPECT_TRUE(masks_.HasMask(0));
  EXPECT_FALSE(masks_.HasMask(1));
  EXPECT_TRUE(masks_.HasMask(2));
  EXPECT_FALSE(masks_.HasMask(3));
  EXPECT_THAT(masks_.MaskOf(2).value(), ElementsAreArray(Only("X")));
  EXPECT_THAT(masks_.MaskOf(0).value(), ElementsAreArray(Only("A")));
  masks_.End();
}

TEST_P(StepMasksTest, FollowsTheSequence) {
  const auto sequence = MakeSequence(1, 1);
  const auto step = [&] {
    StepPlan plan;
    plan.spans = {Sampling(*sequence)};
    masks_.Begin(plan);
    const auto found = masks_.MaskOf(0);
    masks_.End();
    return std::vector<uint32_t>(found.value().begin(), found.value().end());
  };
  EXPECT_EQ(step(), Only("A"));
  // A step that failed, or another plan, left it where it is.
  EXPECT_EQ(step(), Only("A"));
  sequence->AppendToken(TinyIds("A")[0]);
  EXPECT_EQ(step(), Only("B", /*end=*/true));
  for (int i = 0; i < 3; ++i) sequence->AppendToken(TinyIds("B")[0]);
  EXPECT_EQ(step(), Only("B", /*end=*/true));
}

TEST_P(StepMasksTest, AnEndedStepIsLeftAlone) {
  std::vector<std::unique_ptr<Sequence>> sequences;
  StepPlan plan;
  for (int round = 0; round < 50; ++round) {
    sequences.clear();
    plan.spans.clear();
    for (uint64_t i = 1; i <= 8; ++i) {
      sequences.push_back(MakeSequence(i, 1 + i % 2));
      plan.spans.push_back(Sampling(*sequences.back()));
    }
    masks_.Begin(plan);
    if (round % 2 == 0) {
      EXPECT_THAT(masks_.MaskOf(round % 8).value(),
                  Not(ElementsAreArray(Only("Z"))));
    }
    masks_.End();  // as of a forward pass that failed
  }
}

TEST_P(StepMasksTest, WhatCanNotGoOnIsAnError) {
  const auto unknown = MakeSequence(1, 9), refused = MakeSequence(2, 3);
  const auto astray = MakeSequence(3, 1);
  astray->AppendToken(TinyIds("Z")[0]);
  StepPlan plan;
  plan.spans = {Sampling(*unknown), Sampling(*refused), Sampling(*astray)};
  masks_.Begin(plan);
  EXPECT_EQ(masks_.MaskOf(0).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(masks_.MaskOf(1).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(masks_.MaskOf(2).status().message(),
            "the grammar does not allow output token 0, id 93.");
  masks_.End();
}

}  // namespace
}  // namespace lockstep
