#include "worker/core/host_part.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "proto/group.pb.h"

namespace lockstep {
namespace {

std::shared_ptr<v1::AddRequest> Greedy() {
  auto request = std::make_shared<v1::AddRequest>();
  request->add_prompt_token_ids(3);
  request->mutable_sampling()->set_repetition_penalty(1);
  return request;
}

using Change = std::function<void(v1::AddRequest&)>;

void AddBiases(v1::AddRequest& add, size_t count) {
  for (size_t id = 0; id < count; ++id) {
    add.mutable_sampling()->add_bias_token_ids(id);
    add.mutable_sampling()->add_bias_values(1);
  }
}

TEST(HostPart, IsNothingOfWhatTheDeviceKnowsAllOf) {
  const Change kChanges[] = {
      [](auto&) {},
      [](auto& add) { add.mutable_sampling()->set_temperature(0.5); },
      [](auto& add) { AddBiases(add, kMostDeviceAdjustments); },
      [](auto& add) { add.mutable_sampling()->set_min_tokens(1); },
      [](auto& add) { add.mutable_sampling()->set_logprobs_plus_one(1); }};
  for (const auto& change : kChanges) {
    const auto request = Greedy();
    change(*request);
    const Sequence sequence({1, 0}, request);
    SequenceSpan span = {.sequence = &sequence, .count = 1, .samples = true};
    EXPECT_FALSE(NeedsHost(span)) << request->ShortDebugString();
    span.prompt_logits_end = 1;
    EXPECT_FALSE(NeedsHost(span)) << request->ShortDebugString();
  }
}

TEST(HostPart, IsWhatDependsOnTokensBeforeOrHasNoRoom) {
  const Change kChanges[] = {
      [](auto& add) { add.mutable_sampling()->set_repetition_penalty(2); },
      [](auto& add) { add.mutable_sampling()->set_presence_penalty(1); },
      [](auto& add) { add.mutable_sampling()->set_frequency_penalty(1); },
      [](auto& add) { AddBiases(add, kMostDeviceAdjustments + 1); },
      [](auto& add) { add.mutable_sampling()->add_allowed_token_ids(1); },
      [](auto& add) {
        add.mutable_sampling()->add_bad_word_token_ids(1);
        add.mutable_sampling()->add_bad_word_sizes(1);
      },
      [](auto& add) {
        AddBiases(add, kMostDeviceAdjustments);
        add.mutable_sampling()->set_min_tokens(1);
        add.mutable_sampling()->add_stop_token_ids(1);
      },
      [](auto& add) { add.set_grammar(1); }};
  for (const auto& change : kChanges) {
    const auto request = Greedy();
    change(*request);
    const Sequence sequence({1, 0}, request);
    SequenceSpan span = {.sequence = &sequence, .count = 1, .samples = true};
    EXPECT_TRUE(NeedsHost(span)) << request->ShortDebugString();
    // In the middle of its prompt nothing is made of it.
    span.samples = false;
    EXPECT_FALSE(NeedsHost(span)) << request->ShortDebugString();
  }
}

TEST(TakesLargest, AfterMinTokens) {
  const auto request = Greedy();
  request->mutable_sampling()->set_min_tokens(1);
  Sequence sequence({1, 0}, request);
  EXPECT_FALSE(TakesLargest(sequence));
  sequence.AppendToken(9);
  EXPECT_TRUE(TakesLargest(sequence));
}

TEST(TakesLargest, NotWhereIdsAreKeptOut) {
  const auto some = Greedy(), words = Greedy();
  some->mutable_sampling()->add_allowed_token_ids(1);
  words->mutable_sampling()->add_bad_word_token_ids(1);
  words->mutable_sampling()->add_bad_word_sizes(1);
  EXPECT_FALSE(TakesLargest(Sequence({1, 0}, some)));
  EXPECT_FALSE(TakesLargest(Sequence({1, 0}, words)));
}

// A mean takes the hidden states of every chunk.
TEST(HostPart, IsAllOfASequenceThatIsEmbedded) {
  const auto request = Greedy();
  request->mutable_embedding();
  const Sequence sequence({1, 0}, request);
  EXPECT_TRUE(NeedsHost({.sequence = &sequence, .count = 1}));
}

}  // namespace
}  // namespace lockstep
