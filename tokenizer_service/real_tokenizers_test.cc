// The tokenizers of real models, against what Hugging Face's implementation
// computed for them (tests/goldens/tokenizers).

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/status_macros.h"
#include "common/utf8.h"
#include "tests/testing/test_data.h"
#include "tokenizer_service/incremental_decoder.h"
#include "tokenizer_service/tokenizer_factory.h"

namespace lockstep {
namespace {

using Ids = std::vector<uint32_t>;
using Json = nlohmann::ordered_json;

struct Model {
  const char* name;
  const char* path;  // under $LOCKSTEP_TEST_DATA
};

constexpr Model kModels[] = {
    {"qwen3", "tokenizers/qwen3"},
    {"llama3_1", "tokenizers/llama3_1"},
    {"gemma3", "tokenizers/gemma3"},
    {"deepseek_v3", "tokenizers/deepseek_v3"},
    {"gptoss", "tokenizers/gptoss"},
    {"smollm2", "models/SmolLM2-135M-Instruct.Q4_1.gguf"},
};

// Loading takes seconds, so a tokenizer once opened stays so.
absl::StatusOr<const Tokenizer*> Open(const char* path) {
  static auto* const opened =
      new std::map<std::string, std::unique_ptr<Tokenizer>>;
  std::unique_ptr<Tokenizer>& tokenizer = (*opened)[path];
  if (tokenizer == nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string full_path,
                              testing::TestData(path));
    LOCKSTEP_ASSIGN_OR_RETURN(tokenizer, OpenTokenizer(full_path));
  }
  return tokenizer.get();
}

class RealTokenizers : public ::testing::TestWithParam<Model> {
 protected:
  void SetUp() override {
    const auto tokenizer = Open(GetParam().path);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = *tokenizer;
  }

  static Json Golden() {
    return testing::ReadJson(std::string("tests/goldens/tokenizers/ids/") +
                             GetParam().name + ".json");
  }

  std::string Decode(const Ids& ids, bool skip_special_tokens) const {
    const auto text = tokenizer_->Decode(ids, skip_special_tokens);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.value_or("");
  }

  void ExpectPiecesMakeTheWhole(const Ids& ids, bool skip,
                                std::mt19937& random) const;

  const Tokenizer* tokenizer_ = nullptr;
};

TEST_P(RealTokenizers, EncodeAwkwardStringsAsHuggingFaceDoes) {
  const Json strings =
      testing::ReadJson("tests/goldens/tokenizers/awkward_strings.json");
  const Json golden = Golden();
  ASSERT_EQ(strings.size(), 200);
  for (size_t i = 0; i < strings.size(); ++i) {
    const std::string text = strings[i];
    SCOPED_TRACE(strings[i].dump(-1, ' ', /*ensure_ascii=*/true));
    const Ids expected = golden["ids"][i];
    const auto ids = tokenizer_->Encode(text, false);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, expected);

    Ids with_prefix = golden["prefix"];
    with_prefix.insert(with_prefix.end(), expected.begin(), expected.end());
    EXPECT_EQ(*tokenizer_->Encode(text, true), with_prefix);

    const auto decoded = golden["decoded"].find(std::to_string(i));
    EXPECT_EQ(Decode(expected, false), decoded == golden["decoded"].end()
                                           ? text
                                           : decoded->get<std::string>());
  }
}

TEST_P(RealTokenizers, DecodeRandomIdsAsHuggingFaceDoes) {
  const Json golden = Golden();
  for (const Json& row : golden["random"]) {
    const Ids ids = row["ids"];
    EXPECT_EQ(Decode(ids, false), row["text"].get<std::string>());
    EXPECT_EQ(Decode(ids, true), row["skipped"].get<std::string>());
  }
}

void RealTokenizers::ExpectPiecesMakeTheWhole(const Ids& ids, bool skip,
                                              std::mt19937& random) const {
  IncrementalDecoder decoder(tokenizer_, skip);
  std::string text;
  for (size_t at = 0; at < ids.size();) {
    const size_t size = std::min<size_t>(random() % 3 + 1, ids.size() - at);
    const auto piece = decoder.Add(absl::MakeConstSpan(ids).subspan(at, size));
    ASSERT_TRUE(piece.ok()) << piece.status();
    ASSERT_EQ(FindInvalidUtf8(*piece), std::nullopt);
    text += *piece;
    at += size;
  }
  text += *decoder.Finish();
  ASSERT_EQ(text, Decode(ids, skip));
}

// Ids that have no whole characters by themselves: bytes, halves of
// characters, special tokens, spaces.
Ids AwkwardIds(const Tokenizer& tokenizer) {
  Ids result;
  for (uint32_t id = 0; id < tokenizer.info().vocabulary_size; ++id) {
    const Vocabulary::Token token = tokenizer.vocabulary().token(id);
    if (token.special || token.kind != Vocabulary::Kind::kText ||
        token.bytes.size() < 2 || FindInvalidUtf8(token.bytes)) {
      result.push_back(id);
    }
  }
  return result;
}

TEST_P(RealTokenizers, DecodeInPiecesWhatTheyDecodeAtOnce) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const Ids awkward = AwkwardIds(*tokenizer_);
  ASSERT_GT(awkward.size(), 256);
  for (int round = 0; round < 1000; ++round) {
    // From all ordinary to all awkward.
    const uint32_t percent_awkward = random() % 5 * 25;
    Ids ids(random() % 64);
    for (uint32_t& id : ids) {
      id = random() % 100 < percent_awkward
               ? awkward[random() % awkward.size()]
               : random() % tokenizer_->info().vocabulary_size;
    }
    ASSERT_NO_FATAL_FAILURE(ExpectPiecesMakeTheWhole(ids, false, random));
    ASSERT_NO_FATAL_FAILURE(ExpectPiecesMakeTheWhole(ids, true, random));
  }
}

TEST_P(RealTokenizers, DecodeAwkwardStringsInPieces) {
  std::mt19937 random(1);
  const Json golden = Golden();
  for (const Json& row : golden["ids"]) {
    ASSERT_NO_FATAL_FAILURE(ExpectPiecesMakeTheWhole(row, false, random));
  }
}

TEST_P(RealTokenizers, NameTheIdOutsideTheVocabulary) {
  const uint32_t size = tokenizer_->info().vocabulary_size;
  const auto text = tokenizer_->Decode({0, size}, false);
  EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(tokenizer_->Decode({0, size - 1}, false).ok());
}

INSTANTIATE_TEST_SUITE_P(All, RealTokenizers, ::testing::ValuesIn(kModels),
                         [](const auto& info) { return info.param.name; });

TEST(RealTokenizer, RendersConversationsAsHuggingFaceDoes) {
  const Json goldens =
      testing::ReadJson("tests/goldens/tokenizers/chat_goldens.json");
  for (const Model& model : kModels) {
    const auto tokenizer = Open(model.path);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    const auto rendered = goldens["rendered"].find(model.name);
    ASSERT_EQ((*tokenizer)->info().chat_template.has_value(),
              rendered != goldens["rendered"].end());
    if (rendered == goldens["rendered"].end()) continue;
    for (const auto& [title, golden] : rendered->items()) {
      SCOPED_TRACE(std::string(model.name) + ", " + title);
      const auto text =
          (*tokenizer)->RenderChat(goldens["conversations"][title].dump());
      if (golden.contains("text")) {
        ASSERT_TRUE(text.ok()) << text.status();
        EXPECT_EQ(*text, golden["text"].get<std::string>());
      } else {
        EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
      }
      if (golden.contains("raises")) {
        EXPECT_EQ(std::string(text.status().message()),
                  golden["raises"].get<std::string>());
      }
    }
  }
}

TEST(RealTokenizer, RefusesARunThatWearsItsSplittingRuleOut) {
  const auto tokenizer = Open("tokenizers/qwen3");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto ids = (*tokenizer)->Encode(std::string(11 << 20, ' '), false);
  EXPECT_EQ(ids.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE((*tokenizer)->Encode("It works still.", false).ok());
}

TEST(RealTokenizer, KnowsTheEndsOfText) {
  const std::vector<std::pair<const char*, Ids>> expected = {
      {"tokenizers/qwen3", {151645}},
      {"tokenizers/llama3_1", {128009}},
      {"tokenizers/deepseek_v3", {1}},
      {"tokenizers/gptoss", {200002}},
      {"models/SmolLM2-135M-Instruct.Q4_1.gguf", {2}},
  };
  for (const auto& [name, ids] : expected) {
    const auto tokenizer = Open(name);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    EXPECT_EQ((*tokenizer)->info().eos_token_ids, ids) << name;
  }
}

}  // namespace
}  // namespace lockstep
