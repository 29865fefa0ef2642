#include "tests/testing/fake_tokenizer.h"

#include <gtest/gtest.h>

#include "tokenizer_service/incremental_decoder.h"

namespace lockstep {
namespace {

using Ids = std::vector<uint32_t>;

TEST(FakeTokenizer, HasAnIdForEveryByteAndReadsSpecialTokens) {
  const FakeTokenizer tokenizer;
  EXPECT_EQ(*tokenizer.Encode("hi<eos>", true),
            (Ids{FakeTokenizer::kBos, 'h', 'i', FakeTokenizer::kEos}));
  EXPECT_EQ(*tokenizer.Decode({'h', 'i', FakeTokenizer::kEos}, false),
            "hi<eos>");
  EXPECT_EQ(*tokenizer.Decode({'h', 'i', FakeTokenizer::kEos}, true), "hi");
}

TEST(FakeTokenizer, SplitsACharacterOverSeveralIds) {
  const FakeTokenizer tokenizer;
  const Ids ids = *tokenizer.Encode("€", false);
  ASSERT_EQ(ids, (Ids{0xe2, 0x82, 0xac}));
  IncrementalDecoder decoder(&tokenizer, false);
  EXPECT_EQ(*decoder.Add({ids[0], ids[1]}), "");
  EXPECT_EQ(*decoder.Add({ids[2]}), "€");
  EXPECT_EQ(*decoder.Finish(), "");
}

TEST(FakeTokenizer, RendersMessagesAndRaisesOnDemand) {
  const FakeTokenizer tokenizer;
  EXPECT_EQ(*tokenizer.RenderChat(
                R"({"messages": [{"role": "user", "content": "hi"}],
                    "add_generation_prompt": true})"),
            "<bos>[user]hi[assistant]");
  EXPECT_EQ(
      tokenizer
          .RenderChat(R"({"messages": [{"role": "raise", "content": "no"}]})")
          .status(),
      absl::InvalidArgumentError("no"));
  EXPECT_EQ(FakeTokenizer(false).RenderChat("{}").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace lockstep
