#include "worker/grammar/token_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/testing/gguf_writer.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"
#include "tests/testing/tiny_tokenizer.h"
#include "tests/testing/write_file.h"
#include "third_party/text/text_library.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The tokens of tokenizer as a tokenizer.json has them.
std::string TokenizerJson(const testing::TinyTokenizer& tokenizer) {
  nlohmann::json vocab, added = nlohmann::json::array();
  for (size_t id = 0; id < tokenizer.tokens.size(); ++id) {
    vocab[tokenizer.tokens[id]] = id;
    if (id >= testing::TinyTokenizer::kNumSpecial) continue;
    added.push_back({{"id", id},
                     {"content", tokenizer.tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const nlohmann::json byte_level = {{"type", "ByteLevel"},
                                     {"add_prefix_space", false},
                                     {"trim_offsets", true},
                                     {"use_regex", true}};
  return nlohmann::json{
      {"version", "1.0"},
      {"added_tokens", added},
      {"pre_tokenizer", byte_level},
      {"decoder", byte_level},
      {"model",
       {{"type", "BPE"}, {"vocab", vocab}, {"merges", tokenizer.merges}}}}
      .dump();
}

std::string BytesOf(const TokenBytes& tokens, uint32_t id) {
  const uint32_t begin = id == 0 ? 0 : tokens.ends[id - 1];
  return tokens.bytes.substr(begin, tokens.ends[id] - begin);
}

TEST(TokenBytes, OfAFolderAndOfAFileAreTheSame) {
  const std::string folder = ::testing::TempDir() + "token_bytes";
  std::filesystem::create_directories(folder);
  testing::WriteFile(folder + "/tokenizer.json",
                     TokenizerJson(testing::MakeTinyTokenizer()));
  const std::string file = folder + "/model.gguf";
  testing::WriteGguf(testing::TinyModel(), file);
  const auto of_folder = ReadTokenBytes(folder);
  const auto of_file = ReadTokenBytes(file);
  ASSERT_TRUE(of_folder.ok()) << of_folder.status();
  ASSERT_TRUE(of_file.ok()) << of_file.status();
  EXPECT_EQ(of_folder->bytes, of_file->bytes);
  EXPECT_EQ(of_folder->ends, of_file->ends);
  EXPECT_EQ(of_folder->kinds, of_file->kinds);
  EXPECT_EQ(of_folder->MakeDigest(), of_file->MakeDigest());
  EXPECT_EQ(BytesOf(*of_file, 2), "<|im_end|>");
  EXPECT_EQ(BytesOf(*of_file, 3 + '\n'), "\n");
  EXPECT_EQ(BytesOf(*of_file, 3 + 0xff), "\xff");
  EXPECT_EQ(BytesOf(*of_file, 3 + 256), " e");
}

TEST(TokenBytes, OfSentencePiecesPiecesSpacesAndBytesAreMeant) {
  testing::GgufWriter writer;
  writer.AddString("tokenizer.ggml.model", "llama");
  writer.AddStrings("tokenizer.ggml.tokens",
                    {"<unk>", "<s>", "<0x0A>", "\u2581a\u2581b", "Ġ"});
  writer.AddInts("tokenizer.ggml.token_type", {2, 3, 6, 1, 1});
  const std::string path = ::testing::TempDir() + "pieces.gguf";
  testing::WriteFile(path, writer.Finish());
  const auto tokens = ReadTokenBytes(path);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(BytesOf(*tokens, 2), "\n");
  EXPECT_EQ(BytesOf(*tokens, 3), " a b");
  EXPECT_EQ(BytesOf(*tokens, 4), "Ġ");
  EXPECT_THAT(tokens->kinds,
              ElementsAre(LT_TOKEN_TEXT | LT_TOKEN_SPECIAL,
                          LT_TOKEN_TEXT | LT_TOKEN_SPECIAL, LT_TOKEN_BYTE,
                          LT_TOKEN_TEXT, LT_TOKEN_TEXT));
}

TEST(TokenBytes, BytesOfToken) {
  EXPECT_EQ(BytesOfToken("Hello!"), "Hello!");
  EXPECT_EQ(BytesOfToken("Ġ"), " ");
  EXPECT_EQ(BytesOfToken("Ċ"), "\n");
  EXPECT_EQ(BytesOfToken("Ã©"), "\xc3\xa9");
  // Tokens that are no byte-level ones stand for themselves.
  EXPECT_EQ(BytesOfToken("a b"), "a b");
  EXPECT_EQ(BytesOfToken("<｜end｜>"), "<｜end｜>");
  EXPECT_EQ(BytesOfToken("\xff"), "\xff");
  EXPECT_EQ(BytesOfToken(""), "");
}

TEST(TokenBytes, TheDigestIsOfBytesBordersAndKinds) {
  const auto digest = [](bool is_special, const char* a, const char* b) {
    TokenBytes tokens;
    tokens.Add(a, is_special);
    tokens.Add(b, false);
    return tokens.MakeDigest();
  };
  const std::string one = digest(false, "ab", "c");
  EXPECT_EQ(one, digest(false, "ab", "c"));
  EXPECT_NE(one, digest(false, "a", "bc"));
  EXPECT_NE(one, digest(true, "ab", "c"));
}

TEST(TokenBytes, AreCutOrFilledUpToTheModelsVocabulary) {
  TokenBytes tokens;
  tokens.Add("ab", false);
  tokens.Add("c", false);
  tokens.Resize(4);
  EXPECT_THAT(tokens.ends, ElementsAre(2, 3, 3, 3));
  EXPECT_EQ(tokens.kinds[3], 0);
  tokens.Resize(1);
  EXPECT_EQ(tokens.bytes, "ab");
  EXPECT_THAT(tokens.ends, ElementsAre(2));
  tokens.Resize(0);
  EXPECT_EQ(tokens.bytes, "");
}

TEST(TokenBytes, AModelWithoutATokenizerHasNone) {
  const std::string folder = ::testing::TempDir() + "no_tokenizer";
  testing::WriteHuggingFaceFolder({}, folder);
  const auto tokens = ReadTokenBytes(folder);
  EXPECT_EQ(tokens.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(tokens.status().message(), HasSubstr("tokenizer.json"));
  testing::WriteFile(folder + "/tokenizer.json", "{}");
  EXPECT_THAT(ReadTokenBytes(folder).status().message(),
              HasSubstr("tokenizer.json: "));
}

}  // namespace
}  // namespace lockstep
