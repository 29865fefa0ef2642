#include "worker/core/host_part.h"

#include <gtest/gtest.h>

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

TEST(HostPart, OfAPlainGreedyTokenIsNothing) {
  const Sequence sequence({1, 0}, Greedy());
  EXPECT_TRUE(TakesLargest(sequence));
  SequenceSpan span = {.sequence = &sequence, .count = 1, .samples = true};
  EXPECT_FALSE(NeedsHost(span));
  span.prompt_logits_end = 1;
  EXPECT_TRUE(NeedsHost(span));
  EXPECT_FALSE(SamplesOnHost(span));
}

TEST(HostPart, IsWhateverElseIsMadeOfLogits) {
  const std::function<void(v1::AddRequest&)> kChanges[] = {
      [](auto& add) { add.mutable_sampling()->set_temperature(0.5); },
      [](auto& add) { add.mutable_sampling()->set_repetition_penalty(2); },
      [](auto& add) { add.mutable_sampling()->set_presence_penalty(1); },
      [](auto& add) { add.mutable_sampling()->set_frequency_penalty(1); },
      [](auto& add) { add.mutable_sampling()->add_bias_token_ids(1); },
      [](auto& add) { add.mutable_sampling()->set_min_tokens(1); },
      [](auto& add) { add.mutable_sampling()->set_logprobs_plus_one(1); },
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

TEST(HostPart, EndsWithMinTokens) {
  const auto request = Greedy();
  request->mutable_sampling()->set_min_tokens(1);
  Sequence sequence({1, 0}, request);
  EXPECT_FALSE(TakesLargest(sequence));
  sequence.AppendToken(9);
  EXPECT_TRUE(TakesLargest(sequence));
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
