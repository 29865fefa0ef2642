#include "tokenizer_service/tokenizer_folder.h"

#include <absl/strings/match.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/test_data.h"
#include "tests/testing/write_file.h"
#include "tokenizer_service/incremental_decoder.h"

namespace lockstep {
namespace {

using Ids = std::vector<uint32_t>;

constexpr char kSmall[] = "tests/goldens/tokenizers/small";

class TokenizerFolder : public ::testing::Test {
 protected:
  TokenizerFolder() : folder_(::testing::TempDir() + "/tokenizer") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    for (const char* name : {"/tokenizer.json", "/tokenizer_config.json"}) {
      std::filesystem::copy_file(kSmall + std::string(name), folder_ + name);
    }
  }

  void Write(const std::string& name, absl::string_view content) {
    testing::WriteFile(folder_ + "/" + name, content);
  }

  absl::StatusOr<std::unique_ptr<Tokenizer>> Open() const {
    return OpenTokenizerFolder(folder_);
  }

  std::vector<std::string> NotesOf() const {
    std::vector<std::string> notes;
    EXPECT_TRUE(OpenTokenizerFolder(folder_, std::nullopt, &notes).ok());
    return notes;
  }

  std::string Error() const { return std::string(Open().status().message()); }

  const std::string folder_;
};

TEST_F(TokenizerFolder, EncodesAndDecodes) {
  const auto tokenizer = Open();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto ids =
      (*tokenizer)->Encode("the \xf0\x9f\x98\x80<tool_call>", true);
  ASSERT_TRUE(ids.ok()) << ids.status();
  // <s>, "▁the", "▁", four byte tokens, the user's own token.
  EXPECT_EQ(*ids, (Ids{1, 274, 259, 243, 162, 155, 131, 283}));
  EXPECT_EQ(*(*tokenizer)->Decode(*ids, true), "the 😀<tool_call>");
  EXPECT_EQ(*(*tokenizer)->Decode(*ids, false), "<s> the 😀<tool_call>");
}

TEST_F(TokenizerFolder, KnowsItsSpecialTokens) {
  const auto tokenizer = Open();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const TokenizerInfo& info = (*tokenizer)->info();
  EXPECT_EQ(info.vocabulary_size, 285);
  EXPECT_EQ(info.bos_token_id, 1);
  EXPECT_EQ(info.eos_token_ids, Ids{2});
  EXPECT_TRUE(info.chat_template.has_value());
}

TEST_F(TokenizerFolder, RendersTheTemplateNamedDefault) {
  const auto tokenizer = Open();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(*(*tokenizer)
                 ->RenderChat(
                     R"({"messages": [{"role": "user", "content": " hi "}],
                    "add_generation_prompt": true})"),
            "<s>[user] hi</s>\n[assistant]");
  EXPECT_EQ(
      (*tokenizer)->RenderChat(R"({"messages": [{"role": "judge"}]})").status(),
      absl::InvalidArgumentError("unknown role judge"));
}

TEST_F(TokenizerFolder, TheTemplateFileGoesFirst) {
  Write("chat_template.jinja", "{{ bos_token }} from the file");
  const auto tokenizer = Open();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(*(*tokenizer)->RenderChat("{}"), "<s> from the file");
}

TEST_F(TokenizerFolder, WhereATemplateIsGivenThoseOfTheFilesDoNotCount) {
  Write("chat_template.jinja", "{% if %}");
  std::vector<std::string> notes;
  const auto tokenizer =
      OpenTokenizerFolder(folder_, "{{ eos_token }}", &notes);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(*(*tokenizer)->RenderChat("{}"), "</s>");
  EXPECT_EQ(notes, std::vector<std::string>());
}

// It says nothing, but it is one.
TEST_F(TokenizerFolder, AnEmptyTemplateIsOne) {
  Write("chat_template.jinja", "");
  const auto tokenizer = Open();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(*(*tokenizer)->RenderChat("{}"), "");
}

TEST_F(TokenizerFolder, WithoutATemplateMessagesAreRefused) {
  std::filesystem::remove(folder_ + "/tokenizer_config.json");
  const auto tokenizer = Open();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_FALSE((*tokenizer)->info().chat_template.has_value());
  EXPECT_EQ((*tokenizer)->RenderChat("{}").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(TokenizerFolder, TakesTheEndsOfTextOfTheGenerationConfig) {
  Write("config.json", R"({"eos_token_id": 7})");
  EXPECT_EQ((*Open())->info().eos_token_ids, (Ids{2, 7}));
  Write("generation_config.json", R"({"eos_token_id": [2, 5, 6]})");
  EXPECT_EQ((*Open())->info().eos_token_ids, (Ids{2, 5, 6, 7}));
}

TEST_F(TokenizerFolder, NotesFilesThatContradictEachOther) {
  EXPECT_EQ(NotesOf(), std::vector<std::string>());
  Write("chat_template.jinja", "{{ messages }}");
  Write("config.json",
        R"({"eos_token_id": 7, "bos_token_id": 3, "vocab_size": 280})");
  EXPECT_EQ(
      NotesOf(),
      (std::vector<std::string>{
          "chat_template.jinja and tokenizer_config.json have different chat "
          "templates: that of chat_template.jinja counts.",
          "eos_token is </s> (2) in tokenizer_config.json, and eos_token_id of "
          "the model is 7: only the latter end an answer.",
          "bos_token is 1 in tokenizer_config.json, and bos_token_id is 3 in "
          "config.json: the tokenizer's counts.",
          "tokenizer.json has 285 ids, and vocab_size is 280 in config.json: "
          "the model knows nothing of the last ones."}));
  Write("generation_config.json", R"({"eos_token_id": [2, 7]})");
  EXPECT_EQ(NotesOf().size(), 3);
}

TEST_F(TokenizerFolder, AGivenTemplateGoesBeforeTheModels) {
  const auto tokenizer = OpenTokenizerFolder(folder_, "given");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(*(*tokenizer)->RenderChat("{}"), "given");
}

TEST_F(TokenizerFolder, HasAsManyIdsAsTheModel) {
  Write("config.json", R"({"text_config": {"vocab_size": 320}})");
  const auto tokenizer = Open();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->info().vocabulary_size, 320);
  EXPECT_EQ(*(*tokenizer)->Decode({319, 274, 300}, false), "the");
  EXPECT_FALSE((*tokenizer)->Decode({320}, false).ok());
}

TEST_F(TokenizerFolder, SaysWhichFileIsWrong) {
  const struct {
    const char* file;
    const char* content;
    const char* error;
  } kCases[] = {
      {"config.json", R"({"vocab_size": -1})", "config.json: vocab_size is -1"},
      {"config.json", "[]", "config.json holds no JSON object."},
      {"generation_config.json", R"({"eos_token_id": "x"})",
       "generation_config.json: eos_token_id is \"x\""},
      {"generation_config.json", R"({"eos_token_id": 285})",
       "the end-of-text id 285 is outside the vocabulary of 285 ids."},
      {"tokenizer_config.json", R"({"bos_token": "<nix>"})",
       "the bos_token \"<nix>\" is not in the vocabulary."},
      {"tokenizer_config.json", R"({"chat_template": 7})",
       "tokenizer_config.json: chat_template is neither"},
      {"tokenizer_config.json", R"({"chat_template": "{% if %}"})",
       "tokenizer_config.json: syntax error"},
      {"chat_template.jinja", "{% if %}", "chat_template.jinja: syntax error"},
      {"tokenizer.json", "{}", "tokenizer.json: "},
      {"tokenizer.json", "", "tokenizer.json: "},
  };
  for (const auto& c : kCases) {
    const auto original = folder_ + "/" + c.file;
    const bool existed = std::filesystem::exists(original);
    if (existed) std::filesystem::rename(original, folder_ + "/kept");
    Write(c.file, c.content);
    EXPECT_TRUE(absl::StrContains(Error(), c.error)) << Error();
    std::filesystem::remove(original);
    if (existed) std::filesystem::rename(folder_ + "/kept", original);
  }
  std::filesystem::remove(folder_ + "/tokenizer.json");
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kNotFound);
}

// Whatever shows such a value in a sentence would recurse as deep.
TEST_F(TokenizerFolder, RefusesWhatIsNestedDeeply) {
  const std::string deep =
      std::string(200'000, '[') + std::string(200'000, ']');
  Write("generation_config.json", "{\"eos_token_id\": " + deep + "}");
  EXPECT_TRUE(absl::StrContains(Error(),
                                "generation_config.json is refused: "
                                "it is nested deeper than 32 levels"))
      << Error().substr(0, 200);
}

TEST_F(TokenizerFolder, RefusesADecoderThatCanNotStream) {
  auto json = testing::ReadJson(kSmall + std::string("/tokenizer.json"));
  for (const char* decoder :
       {R"({"type": "WordPiece", "prefix": "##", "cleanup": true})", "null",
        R"({"type": "Sequence", "decoders": [{"type": "Fuse"},
            {"type": "ByteFallback"}]})"}) {
    json["decoder"] = nlohmann::json::parse(decoder);
    Write("tokenizer.json", json.dump());
    EXPECT_TRUE(absl::StrContains(Error(), "decoder")) << Error();
  }
}

TEST_F(TokenizerFolder, TruncatesNoTextWhateverTheFileAsks) {
  auto json = testing::ReadJson(kSmall + std::string("/tokenizer.json"));
  json["truncation"] = nlohmann::json::parse(
      R"({"direction": "Right", "max_length": 2, "strategy": "LongestFirst",
          "stride": 0})");
  json["padding"] = nlohmann::json::parse(
      R"({"strategy": {"Fixed": 9}, "direction": "Right", "pad_id": 0,
          "pad_to_multiple_of": null, "pad_type_id": 0, "pad_token": "<unk>"})");
  Write("tokenizer.json", json.dump());
  const auto tokenizer = Open();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(*(*tokenizer)->Encode("the the the", true),
            (Ids{1, 274, 274, 274}));
}

TEST_F(TokenizerFolder, DecodesRandomIdsInPiecesAsAtOnce) {
  const auto tokenizer = Open();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 4000; ++round) {
    const bool skip = random() % 2 == 0;
    Ids ids(random() % 24);
    for (uint32_t& id : ids) id = random() % 285;
    IncrementalDecoder decoder(tokenizer->get(), skip);
    std::string text;
    for (const uint32_t id : ids) text += *decoder.Add({id});
    text += *decoder.Finish();
    ASSERT_EQ(text, *(*tokenizer)->Decode(ids, skip));
  }
}

}  // namespace
}  // namespace lockstep
