#include "common/mapped_file.h"

#include <absl/algorithm/container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>

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
  EXPECT_EQ((*file)->text(), "abc");
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
  const auto file = MappedFile::Open(WriteFile("empty", ""));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->bytes().empty());
  EXPECT_TRUE((*file)->text().empty());
}

// Of this process, backed by files.
int64_t ResidentFileKib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "RssFile:") continue;
    int64_t kib = 0;
    status >> kib;
    return kib;
  }
  return -1;
}

TEST(MappedFile, GivesPagesBackAndStaysReadable) {
  constexpr int64_t kKib = 16 << 10;
  const std::string content(kKib << 10, 'x');
  const auto file = MappedFile::Open(WriteFile("large", content));
  ASSERT_TRUE(file.ok()) << file.status();
  const auto is_x = [&] {
    return absl::c_all_of((*file)->bytes(), [](uint8_t b) { return b == 'x'; });
  };
  const int64_t before = ResidentFileKib();
  EXPECT_TRUE(is_x());
  EXPECT_GE(ResidentFileKib() - before, kKib * 9 / 10);
  (*file)->DropPages();
  EXPECT_LE(ResidentFileKib() - before, kKib / 10);
  EXPECT_TRUE(is_x());
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
