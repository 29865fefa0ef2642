#include "worker/checkpoint/safetensors_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/testing/safetensors_writer.h"
#include "tests/testing/write_file.h"

namespace lockstep {
namespace {

using ::lockstep::testing::SafetensorsWriter;
using ::lockstep::testing::WriteFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kIndex[] = "/model.safetensors.index.json";

// A folder of its own for each test.
std::string NewFolder() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder = ::testing::TempDir() + test->name();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

void WriteTensor(const std::string& path, const std::string& name) {
  SafetensorsWriter writer;
  writer.AddTensor(name, "F32", {1}, "abcd");
  WriteFile(path, writer.Finish());
}

void ExpectRefused(const std::string& folder, const std::string& message) {
  const auto source = SafetensorsFolder::Open(folder);
  ASSERT_FALSE(source.ok());
  EXPECT_THAT(std::string(source.status().message()), HasSubstr(message));
  EXPECT_THAT(std::string(source.status().message()), HasSubstr(folder));
}

TEST(SafetensorsFolder, ReadsASingleFile) {
  const std::string folder = NewFolder();
  WriteTensor(folder + "/model.safetensors", "a");
  const auto source = SafetensorsFolder::Open(folder);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT((*source)->Names(), ElementsAre("a"));
  EXPECT_EQ((*source)->path(), folder);
  EXPECT_EQ((*source)->FileOf("b"), folder + "/model.safetensors");
  EXPECT_EQ((*source)->Get("b").status(),
            absl::NotFoundError(folder + " has no tensor b."));
}

TEST(SafetensorsFolder, ReadsTheFilesOfAnIndex) {
  const std::string folder = NewFolder();
  WriteTensor(folder + "/1.safetensors", "b");
  WriteTensor(folder + "/2.safetensors", "a");
  WriteTensor(folder + "/other.safetensors", "c");
  WriteFile(folder + kIndex,
            R"({"weight_map": {"a": "2.safetensors", "b": "1.safetensors"}})");
  const auto source = SafetensorsFolder::Open(folder);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT((*source)->Names(), ElementsAre("a", "b"));
  EXPECT_EQ((*source)->Get("a")->bytes.size(), 4);
  EXPECT_EQ((*source)->FileOf("a"), folder + "/2.safetensors");
  EXPECT_EQ((*source)->FileOf("d"), folder);
}

TEST(SafetensorsFolder, NamesWhatAnEmptyFolderLacks) {
  ExpectRefused(NewFolder(),
                "has neither model.safetensors nor "
                "model.safetensors.index.json");
}

// As a cache has them whose blobs were deleted.
TEST(SafetensorsFolder, ALinkToNothingIsNamed) {
  for (const char* name :
       {"model.safetensors", "model.safetensors.index.json"}) {
    const std::string folder = NewFolder();
    const std::string link = folder + "/" + name;
    std::filesystem::create_symlink("../blobs/0123", link);
    ExpectRefused(folder, link + ": No such file");
    std::filesystem::remove(link);
    std::filesystem::create_symlink(name, link);
    ExpectRefused(folder, link + ": Too many levels of symbolic links");
  }
}

TEST(SafetensorsFolder, RefusesABadIndex) {
  struct Case {
    const char* index;
    const char* message;
  };
  const Case cases[] = {
      {"{", "index.json is not valid JSON"},
      {"[]", "\"weight_map\" is missing"},
      {R"({"weight_map": []})", "\"weight_map\" is missing"},
      {R"({"weight_map": {"a": 1}})", "the file of tensor \"a\" is not a name"},
      {R"({"weight_map": {"a": "../1.safetensors"}})",
       "the file \"../1.safetensors\" is not in the same folder"},
      {R"({"weight_map": {"a": ".."}})", "\"..\" is not in the same folder"},
      {R"({"weight_map": {"a": "."}})", "\".\" is not in the same folder"},
      {R"({"weight_map": {"a": ""}})", "\"\" is not in the same folder"},
      {R"({"weight_map": {"a": "1.safetensors\u0000"}})",
       "\"1.safetensors\\x00\" is not in the same folder"},
      {R"({"weight_map": {"a": "3.safetensors"}})", "3.safetensors"},
      {R"({"weight_map": {"x": "1.safetensors"}})",
       "1.safetensors has no tensor \"x\", which "
       "model.safetensors.index.json says it has"},
      {R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})",
       "2.safetensors: tensor \"a\" is in another file of the folder as well"},
  };
  const std::string folder = NewFolder();
  WriteTensor(folder + "/1.safetensors", "a");
  WriteTensor(folder + "/2.safetensors", "a");
  WriteFile(folder + kIndex,
            R"({"weight_map": {"a": ")" + std::string(100'000, 'x') + R"("}})");
  ExpectRefused(folder, "x\" is not in the same folder");
  EXPECT_LE(SafetensorsFolder::Open(folder).status().message().size(), 1000);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.index);
    WriteFile(folder + kIndex, c.index);
    ExpectRefused(folder, c.message);
  }
}

}  // namespace
}  // namespace lockstep
