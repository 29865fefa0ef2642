// Real tokenizers, written as GGUF metadata, give the ids that Hugging Face's
// implementation has for their tokenizer.json.

#include <absl/strings/match.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/gguf_file.h"
#include "tests/testing/gguf_writer.h"
#include "tests/testing/test_data.h"
#include "tests/testing/tokenizer_gguf.h"
#include "tokenizer_service/gguf_tokenizer.h"

namespace lockstep {
namespace {

using Ids = std::vector<uint32_t>;

struct Model {
  const char* name;
  const char* pre;  // of byte-level ones
  uint32_t bos_token_id;
};

class RealGgufTokenizers : public ::testing::TestWithParam<Model> {};

TEST_P(RealGgufTokenizers, EncodeAsTheirTokenizerJson) {
  const Model& model = GetParam();
  const auto folder =
      testing::TestData(std::string("tokenizers/") + model.name);
  ASSERT_TRUE(folder.ok()) << folder.status();
  testing::GgufWriter writer =
      testing::TokenizerGguf(*folder + "/tokenizer.json", model.pre);
  writer.AddUint("tokenizer.ggml.bos_token_id", model.bos_token_id);
  const std::string bytes = writer.Finish();
  const auto file = GgufFile::Parse(
      {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()},
      model.name);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto tokenizer = TokenizerFromGguf(**file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  const auto strings =
      testing::ReadJson("tests/goldens/tokenizers/awkward_strings.json");
  const auto golden = testing::ReadJson(
      std::string("tests/goldens/tokenizers/ids/") + model.name + ".json");
  for (size_t i = 0; i < strings.size(); ++i) {
    SCOPED_TRACE(strings[i].dump(-1, ' ', /*ensure_ascii=*/true));
    const std::string text = strings[i];
    // In a GGUF file runs of spaces are looked for as they are; in a
    // tokenizer.json they are pieces, which this character can be a part of.
    if (*model.pre == 0 && absl::StrContains(text, "\u2581")) continue;
    EXPECT_EQ(*(*tokenizer)->Encode(text, false), golden["ids"][i].get<Ids>());
  }
  for (const auto& row : golden["random"]) {
    EXPECT_EQ(*(*tokenizer)->Decode(row["ids"].get<Ids>(), false),
              row["text"].get<std::string>());
    EXPECT_EQ(*(*tokenizer)->Decode(row["ids"].get<Ids>(), true),
              row["skipped"].get<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, RealGgufTokenizers,
    ::testing::Values(Model{"gemma3", "", 2}, Model{"gptoss", "gpt-4o", 199998},
                      Model{"qwen3", "qwen2", 151643},
                      Model{"llama3_1", "llama-bpe", 128000}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lockstep
