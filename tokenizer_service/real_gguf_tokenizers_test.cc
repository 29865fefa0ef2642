// Real tokenizers, written as GGUF metadata, give the ids that Hugging Face's
// implementation has for their tokenizer.json; so does each rule that a file
// can name, over a small vocabulary.

#include <absl/status/statusor.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <gtest/gtest.h>

#include <memory>
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

constexpr char kGoldens[] = "tests/goldens/tokenizers/";

absl::StatusOr<std::unique_ptr<Tokenizer>> Open(
    const testing::GgufWriter& writer, const std::string& name) {
  const std::string bytes = writer.Finish();
  const auto file = GgufFile::Parse(
      {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, name);
  if (!file.ok()) return file.status();
  return TokenizerFromGguf(**file);
}

struct Model {
  const char* name;
  const char* pre;  // of those with merges
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
  const auto tokenizer = Open(writer, model.name);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();

  const auto strings =
      testing::ReadJson(absl::StrCat(kGoldens, "awkward_strings.json"));
  const auto golden =
      testing::ReadJson(absl::StrCat(kGoldens, "ids/", model.name, ".json"));
  for (size_t i = 0; i < strings.size(); ++i) {
    SCOPED_TRACE(strings[i].dump(-1, ' ', /*ensure_ascii=*/true));
    const std::string text = strings[i];
    // In a GGUF file with scores runs of spaces are looked for as they are; in
    // a tokenizer.json they are pieces, which this character can be a part of.
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
    ::testing::Values(Model{"gemma3", "", 2}, Model{"gemma3", "gemma4", 2},
                      Model{"gptoss", "gpt-4o", 199998},
                      Model{"qwen3", "qwen2", 151643},
                      Model{"llama3_1", "llama-bpe", 128000},
                      Model{"deepseek_v3", "deepseek-v3", 0}),
    [](const auto& info) {
      return absl::StrReplaceAll(
          absl::StrCat(info.param.name, "_", info.param.pre), {{"-", "_"}});
    });

// The vocabulary's pieces reach over every place where one could cut.
TEST(GgufSplittings, EachEncodesAsItsTokenizerJson) {
  const auto strings =
      testing::ReadJson(absl::StrCat(kGoldens, "awkward_strings.json"));
  const auto rules =
      testing::ReadJson(absl::StrCat(kGoldens, "splitting/ids.json"));
  EXPECT_EQ(rules.size(), 28);
  for (const auto& [name, rows] : rules.items()) {
    testing::GgufWriter writer = testing::TokenizerGguf(
        absl::StrCat(kGoldens, "splitting/tokenizer.json"), name);
    writer.AddBool("tokenizer.ggml.add_bos_token", false);
    const auto tokenizer = Open(writer, name);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    for (size_t i = 0; i < strings.size(); ++i) {
      EXPECT_EQ(*(*tokenizer)->Encode(strings[i].get<std::string>(), false),
                rows[i].get<Ids>())
          << name << ": " << strings[i].dump(-1, ' ', /*ensure_ascii=*/true);
    }
  }
}

}  // namespace
}  // namespace lockstep
