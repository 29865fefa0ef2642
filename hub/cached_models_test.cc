#include "hub/cached_models.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/testing/write_file.h"

namespace lockstep {
namespace {

class CachedModelsTest : public ::testing::Test {
 protected:
  CachedModelsTest() : folder_(::testing::TempDir() + "/cache") {
    std::filesystem::remove_all(folder_);
  }

  void Write(const std::string& path, absl::string_view content) {
    testing::WriteFile(folder_ + "/" + path, content);
  }

  // "NAME PATH BYTES" of each, its path below the folder.
  std::vector<std::string> Listed() const {
    std::vector<std::string> lines;
    for (const LocalModel& model : CachedModels(folder_)) {
      lines.push_back(absl::StrCat(model.name, " ",
                                   model.path.substr(folder_.size() + 1), " ",
                                   model.bytes));
    }
    return lines;
  }

  const std::string folder_;
  const std::string a_ = std::string(40, 'a');
  const std::string b_ = std::string(40, 'b');
};

TEST_F(CachedModelsTest, AFolderByItsRevision) {
  const std::string at = "models--o--n/snapshots/";
  Write("models--o--n/refs/main", a_);
  Write("models--o--n/refs/v1", a_);
  Write(at + a_ + "/config.json", "{}");
  Write(at + a_ + "/model.safetensors", "weights");
  Write(at + b_ + "/config.json", "{}");
  Write(at + b_ + "/model.safetensors", "other");
  EXPECT_EQ(Listed(), (std::vector<std::string>{
                          absl::StrCat("o/n ", at, a_, " 9"),
                          absl::StrCat("o/n@", b_, " ", at, b_, " 7")}));
}

TEST_F(CachedModelsTest, GgufFilesOneByOneASplitOneOnce) {
  const std::string at = "models--o--n/snapshots/" + a_ + "/";
  Write("models--o--n/refs/refs/pr/1", a_);
  Write(at + "config.json", "{}");
  Write(at + "m-Q4_0.gguf", "1234");
  Write(at + "m-Q8_0-00001-of-00002.gguf", "12");
  Write(at + "m-Q8_0-00002-of-00002.gguf", "345");
  EXPECT_EQ(Listed(),
            (std::vector<std::string>{
                absl::StrCat("o/n@refs/pr/1:m-Q4_0.gguf ", at, "m-Q4_0.gguf 4"),
                absl::StrCat("o/n@refs/pr/1:m-Q8_0-00001-of-00002.gguf ", at,
                             "m-Q8_0-00001-of-00002.gguf 5")}));
}

TEST_F(CachedModelsTest, WithoutWeightsItIsNoModel) {
  Write("models--o--n/snapshots/" + a_ + "/config.json", "{}");
  Write("datasets--o--n/snapshots/" + a_ + "/a.gguf", "1");
  EXPECT_EQ(Listed(), std::vector<std::string>());
  EXPECT_TRUE(CachedModels(folder_ + "/nowhere").empty());
}

TEST_F(CachedModelsTest, AFolderOfModels) {
  Write("a.gguf", "12");
  Write("b/config.json", "{}");
  Write("b/model.safetensors", "345");
  Write("notes.txt", "-");
  std::vector<std::string> lines;
  for (const LocalModel& model : ModelsIn(folder_)) {
    lines.push_back(absl::StrCat(model.name, " ", model.bytes));
  }
  EXPECT_EQ(lines, (std::vector<std::string>{folder_ + "/a.gguf 2",
                                             folder_ + "/b 5"}));
}

}  // namespace
}  // namespace lockstep
