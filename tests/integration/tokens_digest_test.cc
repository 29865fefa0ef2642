// A worker reads what its token ids stand for apart from the tokenizer: of one
// model both have the same digest, of a sibling's they have not.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/digest.h"
#include "tests/testing/gguf_writer.h"
#include "tests/testing/read_file.h"
#include "tests/testing/test_data.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"
#include "tests/testing/tokenizer_gguf.h"
#include "tests/testing/write_file.h"
#include "tokenizer_service/tokenizer_factory.h"
#include "worker/grammar/token_bytes.h"

namespace lockstep {
namespace {

// The digest, in hexadecimal; either's words where one can not read the model.
std::string BothDigest(const std::string& model) {
  const auto tokens = ReadTokenBytes(model);
  const auto tokenizer = OpenTokenizer(model);
  EXPECT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  if (!tokens.ok() || !tokenizer.ok()) return model;
  const Digest digest = (*tokenizer)->vocabulary().MakeTokensDigest();
  EXPECT_EQ(ToHex(tokens->MakeTokensDigest()), ToHex(digest)) << model;
  return ToHex(digest);
}

std::string WriteGgufOf(const std::string& tokenizer_json,
                        const std::string& pre, uint32_t bos_token_id,
                        const std::string& name) {
  testing::GgufWriter writer = testing::TokenizerGguf(tokenizer_json, pre);
  writer.AddUint("tokenizer.ggml.bos_token_id", bos_token_id);
  const std::string path = ::testing::TempDir() + name + ".gguf";
  testing::WriteFile(path, writer.Finish());
  return path;
}

TEST(TokensDigest, OfAFolderIsItsTokenizersAndNotASiblings) {
  const std::string small = "tests/goldens/tokenizers/small";
  const std::string digest = BothDigest(small);
  // One that is trained further has tokens of its own; as many as before.
  std::string json = testing::ReadFile(small + "/tokenizer.json");
  auto changed = nlohmann::ordered_json::parse(json);
  auto& vocab = changed["model"]["vocab"];
  std::string first, last;
  for (const auto& [token, id] : vocab.items()) {
    if (first.empty() || id < vocab[first]) first = token;
    if (last.empty() || id > vocab[last]) last = token;
  }
  std::swap(vocab[first], vocab[last]);
  const std::string folder = ::testing::TempDir() + "sibling";
  std::filesystem::create_directories(folder);
  testing::WriteFile(folder + "/tokenizer.json", changed.dump());
  EXPECT_NE(BothDigest(folder), digest);
}

TEST(TokensDigest, OfAGgufFileIsItsTokenizers) {
  const std::string tiny = ::testing::TempDir() + "tiny.gguf";
  testing::WriteGguf(testing::TinyModel(), tiny);
  BothDigest(tiny);
  // Of every type; the unused ones fill up to the number of logits.
  testing::GgufWriter writer;
  writer.AddString("tokenizer.ggml.model", "llama");
  writer.AddStrings("tokenizer.ggml.tokens",
                    {"<unk>", "<s>", "<0x0A>", "<0x0B>", "\u2581a", "<user>",
                     "<pad0>", "<0xZZ>", "b", "<pad1>"});
  writer.AddInts("tokenizer.ggml.token_type", {2, 3, 6, 1, 1, 4, 5, 1, 1, 5});
  writer.AddFloats("tokenizer.ggml.scores", std::vector<float>(10));
  writer.AddUint("tokenizer.ggml.bos_token_id", 1);
  writer.AddUint("tokenizer.ggml.unknown_token_id", 0);
  const std::string pieces = ::testing::TempDir() + "pieces.gguf";
  testing::WriteFile(pieces, writer.Finish());
  BothDigest(pieces);
}

// Needs the real tokenizers in $LOCKSTEP_TEST_DATA.
struct Model {
  const char* name;
  const char* pre;  // of byte-level ones
  uint32_t bos_token_id;
};

class RealTokensDigest : public ::testing::TestWithParam<Model> {};

TEST_P(RealTokensDigest, IsTheSameInEitherFormat) {
  const auto [name, pre, bos_token_id] = GetParam();
  const auto folder = testing::TestData(std::string("tokenizers/") + name);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(BothDigest(*folder),
            BothDigest(WriteGgufOf(*folder + "/tokenizer.json", pre,
                                   bos_token_id, name)));
}

TEST(TokensDigest, OfARealGgufFileIsItsTokenizers) {
  const auto file = testing::TestData("models/SmolLM2-135M-Instruct.Q4_1.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  BothDigest(*file);
}

INSTANTIATE_TEST_SUITE_P(
    All, RealTokensDigest,
    ::testing::Values(Model{"gemma3", "", 2}, Model{"gptoss", "gpt-4o", 199998},
                      Model{"qwen3", "qwen2", 151643},
                      Model{"llama3_1", "llama-bpe", 128000},
                      Model{"deepseek_v3", "deepseek-v3", 0}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lockstep
