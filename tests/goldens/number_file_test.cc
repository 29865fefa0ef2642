#include "tests/goldens/number_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <string>

#include "tests/testing/safetensors_writer.h"
#include "tests/testing/write_file.h"

namespace lockstep::goldens {
namespace {

using ::testing::ElementsAre;

template <typename T>
std::string Bytes(std::initializer_list<T> values) {
  return std::string(reinterpret_cast<const char*>(values.begin()),
                     values.size() * sizeof(T));
}

std::string Path() { return ::testing::TempDir() + "numbers.safetensors"; }

TEST(NumberFile, ReadsFloatsAndIntegers) {
  testing::SafetensorsWriter writer;
  writer.AddTensor("ids", "I32", {3}, Bytes<int32_t>({7, 8, 9}));
  writer.AddTensor("logits", "F32", {1, 2}, Bytes<float>({0.5f, -2}));
  testing::WriteFile(Path(), writer.Finish());
  const auto file = NumberFile::Open(Path());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->Has("ids"));
  EXPECT_FALSE((*file)->Has("hidden"));
  EXPECT_THAT((*file)->Read<int32_t>("ids")->values, ElementsAre(7, 8, 9));
  const auto logits = (*file)->Read<float>("logits");
  EXPECT_THAT(logits->shape, ElementsAre(1, 2));
  EXPECT_THAT(logits->values, ElementsAre(0.5f, -2));
}

TEST(NumberFile, RefusesWhatDoesNotFit) {
  testing::SafetensorsWriter writer;
  writer.AddTensor("ids", "I32", {4}, Bytes<int32_t>({7, 8, 9}));
  testing::WriteFile(Path(), writer.Finish());
  const auto file = NumberFile::Open(Path());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->Read<int32_t>("ids").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*file)->Read<float>("ids").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*file)->Read<float>("logits").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(NumberFile, RefusesWhatHasNoHeader) {
  const std::string header_of_two_bytes = Bytes<uint64_t>({2});
  for (const std::string& content :
       {std::string(), std::string("1234567"), header_of_two_bytes,
        header_of_two_bytes + "[]", header_of_two_bytes + "{x"}) {
    testing::WriteFile(Path(), content);
    EXPECT_EQ(NumberFile::Open(Path()).status().code(),
              absl::StatusCode::kInvalidArgument)
        << content;
  }
}

}  // namespace
}  // namespace lockstep::goldens
