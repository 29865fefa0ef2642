#include "common/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <string>

#include "tests/testing/gguf_writer.h"

namespace lockstep {
namespace {

using ::lockstep::testing::GgufWriter;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::unique_ptr<GgufFile>> Parse(const std::string& bytes) {
  return GgufFile::Parse(
      absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(bytes.data()),
                          bytes.size()),
      "m.gguf");
}

// A good file with one value of each kind and two tensors.
GgufWriter Good() {
  GgufWriter writer;
  writer.AddString("general.architecture", "llama");
  writer.AddUint("llama.block_count", 2);
  writer.AddInt("signed", 7);
  writer.AddInt("negative", -7);
  writer.AddFloat("eps", 0.5f);
  writer.AddBool("yes", true);
  writer.AddStrings("words", {"a", "", "bc"});
  writer.AddInts("numbers", {3, -1});
  writer.AddTensor("one", {2, 3}, 0, std::string(24, 'x'));
  writer.AddTensor("two", {5}, 0, std::string(20, 'y'));
  return writer;
}

TEST(GgufFile, ReadsMetadataOfEveryKind) {
  const std::string bytes = Good().Finish();
  const auto parsed = Parse(bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const GgufFile& file = **parsed;
  EXPECT_EQ(*file.GetString("general.architecture"), "llama");
  EXPECT_EQ(*file.GetUint("llama.block_count"), 2);
  EXPECT_EQ(*file.GetUint("signed"), 7);
  EXPECT_EQ(*file.GetDouble("eps"), 0.5);
  EXPECT_EQ(std::get<bool>(*file.Find("yes")), true);
  EXPECT_THAT(**file.GetStrings("words"), ElementsAre("a", "", "bc"));
  EXPECT_THAT(**file.GetInts("numbers"), ElementsAre(3, -1));
  EXPECT_EQ(file.Find("nothing"), nullptr);
}

TEST(GgufFile, TellsWhereTensorsLie) {
  const std::string bytes = Good().Finish();
  const auto parsed = Parse(bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const auto& one = (*parsed)->tensors().find("one")->second;
  const auto& two = (*parsed)->tensors().find("two")->second;
  EXPECT_THAT(one.shape, ElementsAre(2, 3));
  EXPECT_EQ(one.offset % 32, 0);
  EXPECT_EQ(two.offset, one.offset + 32);
  EXPECT_EQ(bytes.substr(two.offset), std::string(20, 'y'));
}

TEST(GgufFile, ValuesOutliveTheirMappingsOpen) {
  const std::string path = ::testing::TempDir() + "good.gguf";
  std::ofstream(path, std::ios::binary) << Good().Finish();
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->path(), path);
  EXPECT_EQ(*(*file)->GetString("general.architecture"), "llama");
}

TEST(GgufFile, NamesTheKeyThatIsMissingOrOfAnotherType) {
  const std::string bytes = Good().Finish();
  const auto parsed = Parse(bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ((*parsed)->GetUint("none").status(),
            absl::NotFoundError("m.gguf has no metadata \"none\"."));
  EXPECT_EQ((*parsed)->GetUint("eps").status(),
            absl::InvalidArgumentError(
                "the metadata \"eps\" of m.gguf is a float, expected an "
                "integer that is not negative."));
  EXPECT_FALSE((*parsed)->GetUint("negative").ok());
  EXPECT_FALSE((*parsed)->GetStrings("numbers").ok());
}

TEST(GgufFile, EveryTruncationIsAnError) {
  const std::string bytes = Good().Finish();
  // The last tensor's bytes are not the reader's to know: 20 of them.
  for (size_t size = 0; size <= bytes.size() - 20; ++size) {
    const auto parsed = Parse(bytes.substr(0, size));
    ASSERT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument)
        << size;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("m.gguf"));
  }
}

std::string U32(uint32_t value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}
std::string U64(uint64_t value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

struct BadFile {
  const char* what;
  std::string bytes;
  const char* message;
};

std::string With(void (*change)(GgufWriter&)) {
  GgufWriter writer = Good();
  change(writer);
  return writer.Finish();
}

std::vector<BadFile> BadFiles() {
  const std::string good = Good().Finish();
  return {
      {"magic", "GGML" + good.substr(4), "it does not begin with GGUF"},
      {"version 1", good.substr(0, 4) + U32(1) + good.substr(8),
       "the version is 1, expected 2 or 3"},
      {"big-endian", good.substr(0, 4) + U32(3u << 24) + good.substr(8),
       "the version is 50331648, expected 2 or 3"},
      {"number of tensors",
       good.substr(0, 8) + U64(1ull << 60) + good.substr(16),
       "the list of tensors has 1152921504606846976 items"},
      {"number of entries",
       good.substr(0, 16) + U64(1ull << 60) + good.substr(24),
       "the metadata has 1152921504606846976 items"},
      {"unknown type", With([](GgufWriter& w) { w.AddRaw("k", 13, ""); }),
       "the value of \"k\" is of type 13, which is not known"},
      {"size of a string",
       With([](GgufWriter& w) { w.AddRaw("k", 8, U64(~0ull)); }),
       "the value of \"k\" takes 18446744073709551615 bytes"},
      {"size of an array",
       With([](GgufWriter& w) { w.AddRaw("k", 9, U32(8) + U64(1ull << 61)); }),
       "the value of \"k\" has 2305843009213693952 items"},
      {"array of arrays",
       With([](GgufWriter& w) { w.AddRaw("k", 9, U32(9) + U64(0)); }),
       "the value of \"k\" is an array of type 9"},
      {"array of huge numbers", With([](GgufWriter& w) {
         w.AddRaw("k", 9, U32(10) + U64(1) + U64(~0ull));
       }),
       "more than a signed number can"},
      {"key twice", With([](GgufWriter& w) { w.AddUint("eps", 1); }),
       "the value of \"eps\" is there twice"},
      {"empty key", With([](GgufWriter& w) { w.AddUint("", 1); }),
       "the key of metadata entry 8 is 0 bytes long, expected 1 to 65535"},
      {"alignment",
       With([](GgufWriter& w) { w.AddUint("general.alignment", 24); }),
       "general.alignment is 24, expected a power of two up to 1048576"},
      {"alignment 0",
       With([](GgufWriter& w) { w.AddUint("general.alignment", 0); }),
       "general.alignment is 0"},
      {"tensor twice",
       With([](GgufWriter& w) { w.AddTensorInfo("two", {1}, 0, 0); }),
       "tensor \"two\" is there twice"},
      {"no dimensions",
       With([](GgufWriter& w) { w.AddTensorInfo("t", {}, 0, 0); }),
       "tensor \"t\" has 0 dimensions, expected 1 to 4"},
      {"five dimensions", With([](GgufWriter& w) {
         w.AddTensorInfo("t", {1, 1, 1, 1, 1}, 0, 0);
       }),
       "tensor \"t\" has 5 dimensions"},
      {"dimension 0", With([](GgufWriter& w) {
         w.AddTensorInfo("t", {0, 4}, 0, 0);
       }),
       "dimension 1 of tensor \"t\" is 0"},
      {"overflow", With([](GgufWriter& w) {
         w.AddTensorInfo("t", {1ll << 32, 1ll << 32}, 0, 0);
       }),
       "dimension 1 of tensor \"t\" is 4294967296, expected 1 to 2147483647"},
      {"offset past the end",
       With([](GgufWriter& w) { w.AddTensorInfo("t", {4}, 0, 64); }),
       "tensor \"t\" begins at byte 64 of the tensors' data, which has 52"},
      {"offset that wraps",
       With([](GgufWriter& w) { w.AddTensorInfo("t", {4}, 0, ~31ull); }),
       "tensor \"t\" begins at byte 18446744073709551584"},
      {"offset not aligned",
       With([](GgufWriter& w) { w.AddTensorInfo("t", {4}, 0, 8); }),
       "tensor \"t\" has the offset 8, expected a multiple of 32"},
  };
}

TEST(GgufFile, RefusesBadFilesInASentence) {
  for (const BadFile& bad : BadFiles()) {
    SCOPED_TRACE(bad.what);
    const auto parsed = Parse(bad.bytes);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
    const std::string message(parsed.status().message());
    EXPECT_THAT(message, HasSubstr("m.gguf"));
    EXPECT_THAT(message, HasSubstr(bad.message));
  }
}

}  // namespace
}  // namespace lockstep
