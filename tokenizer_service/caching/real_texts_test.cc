// The tokenizers of real models, with and without a cache.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/utf8.h"
#include "tests/testing/test_data.h"
#include "tokenizer_service/caching/caching_tokenizer.h"
#include "tokenizer_service/tokenizer_factory.h"

namespace lockstep {
namespace {

using Ids = std::vector<uint32_t>;
using Json = nlohmann::ordered_json;

struct Model {
  const char* name;
  const char* path;  // under $LOCKSTEP_TEST_DATA
  const char* cut;   // a token that ends its turns; empty: it has no template
};

constexpr Model kModels[] = {
    {"qwen3", "tokenizers/qwen3", "<|im_end|>"},
    {"llama3_1", "tokenizers/llama3_1", "<|eot_id|>"},
    {"gemma3", "tokenizers/gemma3", "<end_of_turn>"},
    {"deepseek_v3", "tokenizers/deepseek_v3", "<｜end▁of▁sentence｜>"},
    {"gptoss", "tokenizers/gptoss", ""},
    {"smollm2", "models/SmolLM2-135M-Instruct.Q4_1.gguf", "<|im_end|>"},
};

class RealTexts : public ::testing::TestWithParam<Model> {
 protected:
  void SetUp() override {
    const auto path = testing::TestData(GetParam().path);
    ASSERT_TRUE(path.ok()) << path.status();
    auto plain = OpenTokenizer(*path);
    auto other = OpenTokenizer(*path);
    ASSERT_TRUE(plain.ok() && other.ok()) << plain.status();
    plain_ = *std::move(plain);
    caching_ = std::make_unique<CachingTokenizer>(*std::move(other), 64 << 20);
  }

  void ExpectSame(const std::string& text) {
    const auto expected = plain_->Encode(text, false);
    const auto ids = caching_->Encode(text, false);
    ASSERT_EQ(ids.ok(), expected.ok()) << text;
    if (!ids.ok()) return;
    ASSERT_EQ(*ids, *expected) << text;
  }

  std::unique_ptr<Tokenizer> plain_;
  std::unique_ptr<CachingTokenizer> caching_;
};

TEST_P(RealTexts, AreCutBehindTheirTurns) {
  const auto& tokens = caching_->cuts().tokens();
  for (const std::string& token : tokens) std::cout << token << "\n";
  const std::string cut = GetParam().cut;
  if (cut.empty()) GTEST_SKIP() << "its tokenizer has no template";
  EXPECT_NE(std::find(tokens.begin(), tokens.end(), cut), tokens.end());
}

TEST_P(RealTexts, ConversationsHaveTheSameIds) {
  const Json goldens =
      testing::ReadJson("tests/goldens/tokenizers/chat_goldens.json");
  const auto rendered = goldens["rendered"].find(GetParam().name);
  if (rendered == goldens["rendered"].end()) GTEST_SKIP() << "has no template";
  for (int round = 0; round < 2; ++round) {
    for (const auto& [title, golden] : rendered->items()) {
      SCOPED_TRACE(title);
      if (!golden.contains("text")) continue;
      const std::string text = golden["text"];
      ASSERT_NO_FATAL_FAILURE(ExpectSame(text));
      ASSERT_NO_FATAL_FAILURE(ExpectSame(text + text));
    }
  }
  EXPECT_GT(caching_->known_bytes(), caching_->encoded_bytes());
}

TEST_P(RealTexts, AwkwardStringsBetweenTokensHaveTheSameIds) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const Json strings =
      testing::ReadJson("tests/goldens/tokenizers/awkward_strings.json");
  std::vector<std::string> pieces = caching_->cuts().tokens();
  const Vocabulary& vocabulary = plain_->vocabulary();
  for (uint32_t id = 0; id < vocabulary.size() && pieces.size() < 40; ++id) {
    if (vocabulary.token(id).special) {
      pieces.emplace_back(vocabulary.token(id).bytes);
    }
  }
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (uint32_t left = random() % 8; left > 0; --left) {
      text += strings[random() % strings.size()].get<std::string>();
      const std::string& piece = pieces[random() % pieces.size()];
      // Now and then a part of it.
      text +=
          piece.substr(0, random() % 4 == 0 ? piece.size() / 2 : piece.size());
    }
    if (FindInvalidUtf8(text).has_value()) continue;
    ASSERT_NO_FATAL_FAILURE(ExpectSame(text));
  }
}

INSTANTIATE_TEST_SUITE_P(All, RealTexts, ::testing::ValuesIn(kModels),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lockstep
