// Tokenizers of SentencePiece's in the GGUF files that tools/convert_to_gguf.py
// makes give the ids that their folders give.

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/testing/test_data.h"
#include "tests/testing/write_file.h"
#include "tokenizer_service/gguf_tokenizer.h"
#include "tokenizer_service/tokenizer_folder.h"

namespace lockstep {
namespace {

using Ids = std::vector<uint32_t>;
using Json = nlohmann::ordered_json;

constexpr char kTokenizers[] = "tests/goldens/tokenizers/";

Json Read(const std::string& name) {
  return testing::ReadJson(kTokenizers + name);
}

// A folder of `name` with this tokenizer.json and the configuration of a model.
std::string WriteFolder(const std::string& name, const Json& tokenizer) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/", name);
  testing::WriteFile(folder + "/tokenizer.json", tokenizer.dump());
  testing::WriteFile(folder + "/config.json",
                     Read("sentencepiece/config.json").dump());
  return folder;
}

bool Convert(const std::string& folder, const std::string& out) {
  const std::string command = absl::StrCat(
      "PYTHONDONTWRITEBYTECODE=1 python3 tools/convert_to_gguf.py ", folder,
      " ", out);
  return std::system(command.c_str()) == 0;
}

std::unique_ptr<Tokenizer> Converted(const std::string& folder) {
  EXPECT_TRUE(Convert(folder, folder + ".gguf"));
  auto tokenizer = OpenGgufTokenizer(folder + ".gguf");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

TEST(GgufTokenizerGoldens, IdsAreSentencePieces) {
  const auto tokenizer = Converted(
      WriteFolder("sentencepiece", Read("sentencepiece/tokenizer.json")));
  ASSERT_NE(tokenizer, nullptr);
  const Json strings = Read("awkward_strings.json");
  const Json golden = Read("sentencepiece/ids.json");
  ASSERT_EQ(golden["ids"].size(), strings.size());
  for (size_t i = 0; i < strings.size(); ++i) {
    SCOPED_TRACE(strings[i].dump(-1, ' ', /*ensure_ascii=*/true));
    const auto ids = tokenizer->Encode(strings[i].get<std::string>(), true);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, golden["ids"][i].get<Ids>());
  }
  for (const Json& row : golden["random"]) {
    EXPECT_EQ(*tokenizer->Decode(row["ids"].get<Ids>(), false),
              row["text"].get<std::string>());
  }
}

struct Form {
  const char* name;
  const char* changes;  // members of the tokenizer.json, a merge patch
  // There is a space before each text, behind special tokens and before other
  // spaces, too, or before none. A GGUF file can not say that it is otherwise.
  bool is_said_whole;
};

class GgufTokenizerForms : public ::testing::TestWithParam<Form> {};

// What transformers writes for models of SentencePiece's, of which versions.
TEST_P(GgufTokenizerForms, GiveTheIdsOfTheirFolders) {
  Json form = Read("sentencepiece/tokenizer.json");
  const Json changes = Json::parse(GetParam().changes);
  for (const auto& [name, value] : changes.items()) form[name] = value;
  const std::string folder = WriteFolder(GetParam().name, form);
  const auto of_folder = OpenTokenizerFolder(folder);
  ASSERT_TRUE(of_folder.ok()) << of_folder.status();
  const auto of_file = Converted(folder);
  ASSERT_NE(of_file, nullptr);
  int compared = 0;
  for (const Json& row : Read("awkward_strings.json")) {
    const std::string text = row;
    bool is_other =
        absl::StartsWith(text, " ") || absl::StartsWith(text, "\u2581");
    for (const char* token :
         {"<s>", "</s>", "<unk>", "<tool_call>", "[INST]"}) {
      is_other |= absl::StrContains(text, token);
    }
    if (is_other && !GetParam().is_said_whole) continue;
    const Ids ids = *(*of_folder)->Encode(text, true);
    EXPECT_EQ(*of_file->Encode(text, true), ids) << row;
    EXPECT_EQ(*of_file->Decode(ids, true), *(*of_folder)->Decode(ids, true))
        << row;
    ++compared;
  }
  EXPECT_GE(compared, 180);
}

constexpr char kSpaceIsReplaced[] = R"({
  "normalizer": {"type": "Replace", "pattern": {"String": " "},
                 "content": "\u2581"},
  "decoder": {"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
    {"type": "ByteFallback"}, {"type": "Fuse"}]}})";

constexpr char kMetaspaceFirst[] = R"({
  "normalizer": null,
  "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581",
                    "prepend_scheme": "first", "split": false}})";

constexpr char kNoPrefix[] = R"({
  "normalizer": null,
  "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581",
                    "prepend_scheme": "never", "split": false},
  "decoder": {"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
    {"type": "ByteFallback"}, {"type": "Fuse"}]}})";

INSTANTIATE_TEST_SUITE_P(
    All, GgufTokenizerForms,
    ::testing::Values(Form{"as_llama_2", "{}", true},
                      Form{"as_gemma", kSpaceIsReplaced, true},
                      Form{"metaspace", kMetaspaceFirst, false},
                      Form{"without_prefix", kNoPrefix, true},
                      Form{"without_bos", R"({"post_processor": null})", true}),
    [](const auto& info) { return info.param.name; });

TEST(GgufTokenizerGoldens, APostProcessorThatAFileCanNotSayIsRefused) {
  Json form = Read("sentencepiece/tokenizer.json");
  form["post_processor"] = Json::parse(
      R"({"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1],
          "trim_offsets": true, "add_prefix_space": false})");
  const std::string folder = WriteFolder("roberta", form);
  EXPECT_FALSE(Convert(folder, folder + ".gguf"));
}

}  // namespace
}  // namespace lockstep
