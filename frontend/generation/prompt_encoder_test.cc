#include "frontend/generation/prompt_encoder.h"

#include <gtest/gtest.h>

#include "frontend/generation/error_detail.h"
#include "tests/testing/fake_tokenizer.h"

namespace lockstep {
namespace {

using Ids = std::vector<uint32_t>;

TEST(PromptEncoder, TextGetsWhatTheTokenizerAdds) {
  const FakeTokenizer tokenizer;
  const auto prompt =
      EncodePrompt({TextPrompt{"hi"}, true, "text"}, ChatFormat(), tokenizer);
  ASSERT_TRUE(prompt.ok()) << prompt.status();
  EXPECT_EQ(prompt->token_ids, (Ids{FakeTokenizer::kBos, 'h', 'i'}));
  EXPECT_FALSE(prompt->rendered.has_value());
}

TEST(PromptEncoder, AChatIsEncodedAsItIsRendered) {
  const FakeTokenizer tokenizer;
  const ChatPrompt chat = {{{"user", "say \"né\"\n"}}, true};
  const auto prompt = EncodePrompt({chat, false}, ChatFormat(), tokenizer);
  ASSERT_TRUE(prompt.ok()) << prompt.status();
  EXPECT_EQ(prompt->rendered, "<bos>[user]say \"né\"\n[assistant]");
  EXPECT_EQ(prompt->token_ids.front(), FakeTokenizer::kBos);
  EXPECT_EQ(prompt->token_ids[1], '[');
}

TEST(PromptEncoder, AChatHasOneBosWhoeverWritesIt) {
  const FakeTokenizer tokenizer;
  const ChatPrompt chat = {{{"user", "hi"}}};
  for (const bool add_special_tokens : {false, true}) {
    const auto prompt =
        EncodePrompt({chat, add_special_tokens}, ChatFormat(), tokenizer);
    ASSERT_TRUE(prompt.ok()) << prompt.status();
    EXPECT_EQ(prompt->token_ids[0], FakeTokenizer::kBos);
    EXPECT_EQ(prompt->token_ids[1], '[');
  }
}

TEST(PromptEncoder, TokenIdsStayAsTheyAre) {
  const FakeTokenizer tokenizer;
  EXPECT_EQ(EncodePrompt({TokenPrompt{{7, 8}}, false}, ChatFormat(), tokenizer)
                ->token_ids,
            (Ids{7, 8}));
}

TEST(PromptEncoder, APromptLeavesRoomForWhatIsAskedFor) {
  GenerateSpec spec;
  spec.model = {"tiny", /*max_context_tokens=*/8, 300};
  spec.prompt = {TextPrompt{"…"}, true, "text"};
  EXPECT_TRUE(CheckPromptTokens(spec, 1).ok());
  EXPECT_TRUE(CheckPromptTokens(spec, 7).ok());
  const absl::Status too_long = CheckPromptTokens(spec, 8);
  EXPECT_EQ(too_long.message(),
            "text is 8 tokens long; at most 7 fit, as the context of tiny is 8 "
            "tokens and the answer needs one of them.");
  EXPECT_EQ(ReasonOf(too_long), kContextLengthExceeded);
  EXPECT_EQ(CheckPromptTokens(spec, 0),
            absl::InvalidArgumentError(
                "text holds no token; a prompt needs at least one."));

  spec.sampling.set_max_tokens(3);
  EXPECT_TRUE(CheckPromptTokens(spec, 5).ok());
  const absl::Status too_many = CheckPromptTokens(spec, 6);
  EXPECT_EQ(too_many.message(),
            "text is 6 tokens long and 3 more are asked for; together they "
            "must fit the context of tiny, 8 tokens.");
  EXPECT_EQ(ReasonOf(too_many), kContextLengthExceeded);
}

}  // namespace
}  // namespace lockstep
