#include "common/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string WriteFile(const std::string& name, const std::string& content) {
  const std::string path = ::testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

TEST(MappedFile, ShowsTheBytesOfTheFile) {
  const auto file = MappedFile::Open(WriteFile("three", "abc"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT((*file)->bytes(), ElementsAre('a', 'b', 'c'));
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
  const auto file = MappedFile::Open(WriteFile("empty", ""));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->bytes().empty());
}

TEST(MappedFile, NamesThePathOfAMissingFile) {
  const auto file = MappedFile::Open("/no/such/file");
  EXPECT_EQ(file.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("/no/such/file"));
}

TEST(MappedFile, RefusesAFolder) {
  const auto file = MappedFile::Open(::testing::TempDir());
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("a folder"));
}

TEST(MappedFile, RefusesWhatIsNotAFile) {
  const auto file = MappedFile::Open("/dev/null");
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep
