#include "hub/wanted_files.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

using Names = std::vector<std::string>;

// "FILE FILE… -> ENTRY", or the error.
std::string Chosen(const Names& files, const std::string& file = "",
                   ModelPart part = ModelPart::kAll) {
  const HubModel model = {.repo = "o/n", .file = file};
  const auto wanted = ChooseFiles(model, files, part);
  if (!wanted.ok()) return std::string(wanted.status().message());
  return absl::StrCat(absl::StrJoin(wanted->names, " "), " -> ", wanted->entry);
}

TEST(WantedFilesTest, OfAFolderWhatDescribesItAndItsWeights) {
  const Names files = {"README.md",         "config.json",
                       "model.safetensors", "onnx/model.safetensors",
                       "tokenizer.json",    "chat_template.jinja",
                       "pytorch_model.bin", "original/params.json"};
  EXPECT_EQ(Chosen(files),
            "config.json tokenizer.json chat_template.jinja "
            "model.safetensors -> ");
  EXPECT_EQ(Chosen(files, "", ModelPart::kText),
            "config.json tokenizer.json chat_template.jinja -> ");
}

TEST(WantedFilesTest, WeightsThatAreThereTwiceComeOnce) {
  EXPECT_EQ(Chosen({"config.json", "consolidated.safetensors",
                    "model-00001-of-00002.safetensors",
                    "model-00002-of-00002.safetensors",
                    "model.safetensors.index.json"}),
            "config.json model.safetensors.index.json "
            "model-00001-of-00002.safetensors "
            "model-00002-of-00002.safetensors -> ");
  EXPECT_EQ(Chosen({"config.json", "weights.safetensors"}),
            "config.json weights.safetensors -> ");
}

TEST(WantedFilesTest, TheOnlyGgufFile) {
  EXPECT_EQ(Chosen({"config.json", "a.Q4_0.gguf", "mmproj-a.gguf"}),
            "a.Q4_0.gguf -> a.Q4_0.gguf");
}

TEST(WantedFilesTest, OfSeveralTheOneThatIsNamed) {
  const Names files = {"a-Q4_0.gguf", "a-Q8_0.gguf", "sub/a.f16.gguf"};
  EXPECT_EQ(Chosen(files, "a-Q8_0.gguf"), "a-Q8_0.gguf -> a-Q8_0.gguf");
  EXPECT_EQ(Chosen(files, "q8_0"), "a-Q8_0.gguf -> a-Q8_0.gguf");
  EXPECT_EQ(Chosen(files, "F16"), "sub/a.f16.gguf -> sub/a.f16.gguf");
  EXPECT_EQ(Chosen(files),
            "o/n has several models; it has a-Q4_0.gguf, a-Q8_0.gguf, "
            "sub/a.f16.gguf: --model=o/n:FILE names one.");
  EXPECT_TRUE(absl::StartsWith(Chosen(files, "Q5_K_M"),
                               "o/n has no file Q5_K_M; it has a-Q4_0.gguf"));
  EXPECT_EQ(Chosen({"config.json", "model.safetensors"}, "Q4"),
            "o/n has no file Q4.");
}

TEST(WantedFilesTest, AllFilesOfASplitModel) {
  const Names files = {"d/a-Q4-00002-of-00002.gguf",
                       "d/a-Q4-00001-of-00002.gguf",
                       "a-Q8-00001-of-00003.gguf"};
  EXPECT_EQ(Chosen(files, "Q4"),
            "d/a-Q4-00002-of-00002.gguf d/a-Q4-00001-of-00002.gguf -> "
            "d/a-Q4-00001-of-00002.gguf");
  EXPECT_EQ(Chosen(files, "Q8"),
            "o/n has 1 of the 3 files of a-Q8-00001-of-00003.gguf.");
}

TEST(WantedFilesTest, ATextAloneIsEnoughForAGateway) {
  const Names files = {"config.json", "tokenizer.json"};
  EXPECT_EQ(Chosen(files, "", ModelPart::kText),
            "config.json tokenizer.json -> ");
  EXPECT_TRUE(absl::StrContains(Chosen(files), "neither config.json with"));
}

TEST(WantedFilesTest, OtherFormatsAreRefused) {
  EXPECT_EQ(Chosen({"config.json", "pytorch_model.bin"}),
            "o/n has neither config.json with safetensors nor a GGUF file; "
            "other formats are not read.");
}

}  // namespace
}  // namespace lockstep
