#include "worker/checkpoint/safetensors_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/testing/safetensors_writer.h"

namespace lockstep {
namespace {

using kernels::DType;
using ::lockstep::testing::SafetensorsWriter;
using ::nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::unique_ptr<SafetensorsFile>> Parse(
    const std::string& bytes) {
  return SafetensorsFile::Parse(
      absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(bytes.data()),
                          bytes.size()),
      "m.safetensors");
}

// Three tensors; 24 + 8 + 4 bytes of data.
SafetensorsWriter Good() {
  SafetensorsWriter writer;
  writer.AddTensor("b", "F32", {2, 3}, std::string(24, 'b'));
  writer.AddTensor("a", "BF16", {4}, std::string(8, 'a'));
  writer.AddTensor("scalar", "F32", {}, std::string(4, 's'));
  writer.header()["__metadata__"] = {{"format", "pt"}};
  return writer;
}

TEST(SafetensorsFile, ShowsTheTensorsOfTheFile) {
  const std::string bytes = Good().Finish();
  const auto file = Parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ((*file)->tensors().size(), 3);
  const Tensor& b = (*file)->tensors().find("b")->second;
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.type, DType::kF32);
  EXPECT_THAT(b.shape, ElementsAre(2, 3));
  EXPECT_EQ(std::string(b.bytes.begin(), b.bytes.end()), std::string(24, 'b'));
  const Tensor& a = (*file)->tensors().find("a")->second;
  EXPECT_EQ(a.type, DType::kBF16);
  EXPECT_EQ(std::string(a.bytes.begin(), a.bytes.end()), std::string(8, 'a'));
}

TEST(SafetensorsFile, EveryTruncationIsAnError) {
  const std::string bytes = Good().Finish();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto file = Parse(bytes.substr(0, size));
    ASSERT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument) << size;
    EXPECT_THAT(std::string(file.status().message()),
                HasSubstr("m.safetensors"));
  }
}

TEST(SafetensorsFile, RefusesLyingHeadersInASentence) {
  struct Case {
    std::function<void(json&)> change;  // of the header
    const char* message;
  };
  const Case cases[] = {
      {[](json& h) {
         h["b"]["data_offsets"] = {0, 20};
       },
       "tensor \"b\": data_offsets span 20 bytes, expected 24 for F32 [2, 3]"},
      {[](json& h) {
         h["b"]["shape"] = {3, 3};
       },
       "tensor \"b\": data_offsets span 24 bytes, expected 36 for F32 [3, 3]"},
      {[](json& h) {
         h["b"]["data_offsets"] = {100, 124};
       },
       "tensor \"b\": data_offsets are [100, 124], expected a begin and an end "
       "up to 36"},
      {[](json& h) {
         h["b"]["data_offsets"] = {24, 0};
       },
       "data_offsets are [24, 0]"},
      {[](json& h) { h["b"]["data_offsets"] = {0}; }, "data_offsets are [0]"},
      {[](json& h) {
         h["b"]["data_offsets"] = {0, ~0ull};
       },
       "data_offsets are [0, 18446744073709551615]"},
      {[](json& h) {
         h["b"]["data_offsets"] = {-4, 20};
       },
       "data_offsets holds what is not an integer of at least 0"},
      {[](json& h) { h["b"]["data_offsets"] = "all"; },
       "data_offsets is missing or wrong"},
      {[](json& h) { h["b"].erase("data_offsets"); },
       "data_offsets is missing or wrong"},
      {[](json& h) {
         h["b"]["data_offsets"] = {8, 32};
       },
       "tensor \"b\" begins at byte 8 of the data, expected 0"},
      {[](json& h) {
         h["a"]["data_offsets"] = {20, 28};
       },
       "tensor \"a\" begins at byte 20 of the data, expected 24"},
      {[](json& h) { h.erase("a"); },
       "tensor \"scalar\" begins at byte 32 of the data, expected 24"},
      {[](json& h) { h.erase("scalar"); },
       "the tensors end at byte 32 of the data, which has 36"},
      {[](json& h) {
         h["b"]["shape"] = {0, 3};
       },
       "the shape [0, 3] has a dimension of 0"},
      {[](json& h) {
         h["b"]["shape"] = {1ull << 40, 1ull << 40};
       },
       "too many elements"},
      {[](json& h) { h["b"]["shape"] = {1, 1, 1, 1, 1, 1, 1, 2, 3}; },
       "shape is missing or wrong, expected a list of up to 8 numbers"},
      {[](json& h) { h["b"].erase("dtype"); }, "dtype is missing"},
      {[](json& h) { h["b"] = 3; }, "tensor \"b\": dtype is missing"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.message);
    SafetensorsWriter writer = Good();
    // As a reader finds it: its numbers unsigned where they can be.
    json header = json::parse(writer.header().dump());
    c.change(header);
    const auto file = Parse(writer.FinishWithHeader(header.dump()));
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    const std::string message(file.status().message());
    EXPECT_THAT(message, HasSubstr("m.safetensors"));
    EXPECT_THAT(message, HasSubstr(c.message));
  }
}

TEST(SafetensorsFile, RefusesHeadersThatAreNone) {
  struct Case {
    std::string header;
    const char* message;
  };
  const Case cases[] = {
      {"", "is not valid JSON"},
      {"[]", "the header is not a JSON object"},
      {"{\"a\": ", "the header of m.safetensors is not valid JSON"},
      {R"({"a": {}, "a": {}})", "the key \"a\" is there twice"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.message);
    const auto file = Parse(SafetensorsWriter().FinishWithHeader(c.header));
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(c.message));
  }
}

TEST(SafetensorsFile, NamesATypeThatIsNotSupported) {
  SafetensorsWriter writer;
  writer.AddTensor("w", "F8_E5M2", {4}, "abcd");
  EXPECT_EQ(Parse(writer.Finish()).status(),
            absl::UnimplementedError(
                "m.safetensors: tensor \"w\" is of type F8_E5M2, which is not "
                "supported; supported are F32, F16, BF16, F8_E4M3, I8, I32, "
                "I64."));
}

}  // namespace
}  // namespace lockstep
