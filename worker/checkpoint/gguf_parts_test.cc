#include "worker/checkpoint/gguf_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/gguf_writer.h"
#include "tests/testing/write_file.h"
#include "worker/checkpoint/gguf_source.h"

namespace lockstep {
namespace {

using ::lockstep::testing::GgufWriter;
using ::lockstep::testing::WriteFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Three parts, a tensor in each.
class GgufPartsTest : public ::testing::Test {
 protected:
  GgufPartsTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = ::testing::TempDir() + test->name();
    std::filesystem::remove_all(folder_);
    for (int i = 0; i < 3; ++i) Write(i, i, 3, std::string(1, 'a' + i));
  }

  std::string Path(int number) const {
    return folder_ + "/m-0000" + std::to_string(number + 1) + "-of-00003.gguf";
  }

  void Write(int file, uint32_t number, uint32_t count,
             const std::string& tensor, int32_t tensors = 3) {
    GgufWriter writer;
    writer.AddUint("split.no", number);
    writer.AddUint("split.count", count);
    writer.AddInt("split.tensors.count", tensors);
    writer.AddTensor(tensor, {1}, /*type=*/0, "abcd");
    WriteFile(Path(file), writer.Finish());
  }

  absl::StatusOr<std::unique_ptr<GgufSource>> Open(const std::string& path) {
    auto first = GgufFile::Open(path);
    if (!first.ok()) return first.status();
    auto others = OpenOtherParts(**first);
    if (!others.ok()) return others.status();
    return GgufSource::Create(*std::move(first), *std::move(others));
  }

  void ExpectRefused(const std::string& message) {
    EXPECT_THAT(std::string(Open(Path(0)).status().message()),
                HasSubstr(message));
  }

  std::string folder_;
};

TEST_F(GgufPartsTest, ShowTheTensorsOfAll) {
  const auto source = Open(Path(0));
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT((*source)->Names(), ElementsAre("a", "b", "c"));
  EXPECT_EQ((*source)->Get("b")->bytes.size(), 4);
  EXPECT_EQ((*source)->FileOf("b"), Path(1));
  EXPECT_EQ((*source)->FileOf("x"), Path(0));
}

TEST_F(GgufPartsTest, AFileWithoutOthersIsAllOfAModel) {
  const std::string path = folder_ + "/m.gguf";
  GgufWriter writer;
  writer.AddTensor("a", {1}, /*type=*/0, "abcd");
  WriteFile(path, writer.Finish());
  const auto source = Open(path);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT((*source)->Names(), ElementsAre("a"));
}

TEST_F(GgufPartsTest, AMissingOneIsNamed) {
  std::filesystem::remove(Path(2));
  ExpectRefused(Path(2));
  EXPECT_EQ(Open(Path(0)).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(GgufPartsTest, OneUnderTheNameOfAnotherIsRefused) {
  Write(1, 0, 3, "b");
  ExpectRefused(Path(1) +
                " says that it is part 0 of 3, counted from 0, expected part 1 "
                "of 3.");
  Write(1, 1, 4, "b");
  ExpectRefused("says that it is part 1 of 4");
}

TEST_F(GgufPartsTest, TheFirstIsTheOneToGive) {
  EXPECT_THAT(std::string(Open(Path(1)).status().message()),
              HasSubstr("says that it is part 1 of 3"));
  std::filesystem::rename(Path(0), folder_ + "/m.gguf");
  EXPECT_THAT(std::string(Open(folder_ + "/m.gguf").status().message()),
              HasSubstr("its name has to end with -00001-of-00003.gguf."));
}

TEST_F(GgufPartsTest, TensorsThatAreMissingOrThereTwiceAreRefused) {
  Write(0, 0, 3, "a", /*tensors=*/4);
  ExpectRefused("have 3 tensors, expected 4, as it says.");
  Write(0, 0, 3, "a");
  Write(2, 2, 3, "b");
  ExpectRefused(Path(2) +
                ": tensor \"b\" is there under another name, or in another "
                "file");
  Write(0, 0, 4'000'000'000u, "a");
  ExpectRefused("split.count is 4000000000, expected at most 99999.");
}

}  // namespace
}  // namespace lockstep
