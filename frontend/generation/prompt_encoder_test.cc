#include "frontend/generation/prompt_encoder.h"

#include <gtest/gtest.h>

#include "tests/testing/fake_tokenizer.h"

namespace lockstep {
namespace {

using Ids = std::vector<uint32_t>;

TEST(PromptEncoder, TextGetsWhatTheTokenizerAdds) {
  const FakeTokenizer tokenizer;
  const auto prompt = EncodePrompt({TextPrompt{"hi"}, true}, tokenizer);
  ASSERT_TRUE(prompt.ok()) << prompt.status();
  EXPECT_EQ(prompt->token_ids, (Ids{FakeTokenizer::kBos, 'h', 'i'}));
  EXPECT_FALSE(prompt->rendered.has_value());
}

TEST(PromptEncoder, AChatIsEncodedAsItIsRendered) {
  const FakeTokenizer tokenizer;
  const ChatPrompt chat = {{{"user", "say \"né\"\n"}}, true};
  const auto prompt = EncodePrompt({chat, false}, tokenizer);
  ASSERT_TRUE(prompt.ok()) << prompt.status();
  EXPECT_EQ(prompt->rendered, "<bos>[user]say \"né\"\n[assistant]");
  EXPECT_EQ(prompt->token_ids.front(), FakeTokenizer::kBos);
  EXPECT_EQ(prompt->token_ids[1], '[');
}

TEST(PromptEncoder, TokenIdsStayAsTheyAre) {
  const FakeTokenizer tokenizer;
  EXPECT_EQ(EncodePrompt({TokenPrompt{{7, 8}}, false}, tokenizer)->token_ids,
            (Ids{7, 8}));
}

TEST(PromptEncoder, WhatTheTemplateRefusesHasItsWords) {
  const ChatPrompt chat = {{{"raise", "roles must alternate"}}, true};
  EXPECT_EQ(EncodePrompt({chat, false}, FakeTokenizer()).status(),
            absl::InvalidArgumentError("chat.messages cannot be rendered: "
                                       "roles must alternate"));
  EXPECT_EQ(
      EncodePrompt({chat, false}, FakeTokenizer(/*has_chat_template=*/false))
          .status(),
      absl::InvalidArgumentError("chat cannot be rendered: the model has no "
                                 "chat template; send text or token_ids."));
}

TEST(PromptEncoder, AChatThatIsTooLongAsJsonIsNamedAsTheClientKnowsIt) {
  const ChatPrompt chat = {{{"user", std::string(4 << 20, '\x01')}}, true};
  EXPECT_EQ(EncodePrompt({chat, false}, FakeTokenizer()).status(),
            absl::InvalidArgumentError(
                "chat.messages is 25165896 bytes long as JSON, where some "
                "characters take more; at most 16777216 are allowed."));
}

TEST(PromptEncoder, APromptLeavesRoomForOneToken) {
  const ServedModel model = {"tiny", /*max_context_tokens=*/8, 300};
  const PromptSpec text = {TextPrompt{"…"}, true};
  const PromptSpec ids = {TokenPrompt{}, false};
  EXPECT_TRUE(CheckPromptTokens(text, 1, model).ok());
  EXPECT_TRUE(CheckPromptTokens(text, 7, model).ok());
  EXPECT_EQ(CheckPromptTokens(text, 8, model),
            absl::InvalidArgumentError(
                "text is 8 tokens long; at most 7 fit, as the context of tiny "
                "is 8 tokens and the answer needs one of them."));
  EXPECT_EQ(CheckPromptTokens(ids, 9, model),
            absl::InvalidArgumentError(
                "token_ids is 9 tokens long; at most 7 fit, as the context of "
                "tiny is 8 tokens and the answer needs one of them."));
  EXPECT_EQ(CheckPromptTokens(text, 0, model),
            absl::InvalidArgumentError(
                "text holds no token; a prompt needs at least one."));
}

}  // namespace
}  // namespace lockstep
