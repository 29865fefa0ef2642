// What files that lie may cost: a sentence, and no more memory than so many
// times their own bytes.

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/testing/gguf_writer.h"
#include "tests/testing/memory/peak_memory.h"
#include "tests/testing/safetensors_writer.h"
#include "tests/testing/tiny_model.h"
#include "tests/testing/write_file.h"
#include "worker/weights/model_files.h"

namespace lockstep {
namespace {

using ::lockstep::testing::GgufWriter;
using ::lockstep::testing::PeakMemory;
using ::lockstep::testing::SafetensorsWriter;
using ::lockstep::testing::WriteFile;
using ::testing::HasSubstr;

constexpr int64_t kMostPerByte = 128;    // docs/models.md
constexpr int64_t kOfTheTest = 4 << 20;  // of messages and allocators
constexpr int kManyBytes = 1 << 20;

std::string Repeated(absl::string_view part) {
  std::string text;
  while (text.size() < kManyBytes) absl::StrAppend(&text, part);
  text.pop_back();  // the last comma
  return text;
}

std::string ManyKeys() {
  std::string text;
  for (int i = 0; text.size() < kManyBytes; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", "\"", absl::Hex(i), "\":{}");
  }
  return text;
}

std::string U64(uint64_t value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

class HostileFilesTest : public ::testing::Test {
 protected:
  HostileFilesTest() {
    std::filesystem::remove_all(folder_);
    WriteFile(folder_ + "/config.json",
              MakeHuggingFaceConfig(testing::TinyModel()).dump());
  }

  // Of the model at `path`, whose file `file` has these bytes.
  void ExpectCheapRefusal(const std::string& path, const std::string& file,
                          const std::string& bytes,
                          const std::string& message) {
    SCOPED_TRACE(message);
    WriteFile(file, bytes);
    const PeakMemory peak;
    const auto model = OpenModel(path);
    const int64_t size = bytes.size();
    EXPECT_LE(peak.GrownBytes(), kMostPerByte * size + kOfTheTest);
    EXPECT_FALSE(model.ok());
    EXPECT_THAT(std::string(model.status().message()), HasSubstr(file));
    EXPECT_THAT(std::string(model.status().message()), HasSubstr(message));
  }

  void ExpectWeightsRefused(const std::string& bytes,
                            const std::string& message) {
    ExpectCheapRefusal(folder_, folder_ + "/model.safetensors", bytes, message);
  }

  void ExpectGgufRefused(const std::string& bytes, const std::string& message) {
    const std::string path = folder_ + "/model.gguf";
    ExpectCheapRefusal(path, path, bytes, message);
  }

  const std::string folder_ = ::testing::TempDir() + "hostile";
};

TEST_F(HostileFilesTest, HeadersOfSafetensors) {
  const auto with_header = [](const std::string& header) {
    return SafetensorsWriter().FinishWithHeader(header);
  };
  ExpectWeightsRefused(U64(uint64_t{1} << 63),
                       "said to take 9223372036854775808");
  ExpectWeightsRefused(with_header("{" + ManyKeys() + "}"), "dtype is missing");
  for (const char* part : {"0,", "[],", "{},", "\"\","}) {
    ExpectWeightsRefused(with_header(R"({"a":[)" + Repeated(part) + "]}"),
                         "dtype is missing");
  }
  ExpectWeightsRefused(
      with_header(R"({"a":{"dtype":"F32","data_offsets":[0,0],"shape":[)" +
                  Repeated("9,") + "]}}"),
      "shape is missing or wrong");
}

TEST_F(HostileFilesTest, OtherFilesOfAFolder) {
  ExpectCheapRefusal(folder_, folder_ + "/model.safetensors.index.json",
                     R"({"weight_map":{)" + ManyKeys() + "}}", "is not a name");
  ExpectCheapRefusal(
      folder_, folder_ + "/config.json",
      R"({"architectures":["LlamaForCausalLM"],"a":[)" + Repeated("[],") + "]}",
      "vocab_size");
}

TEST_F(HostileFilesTest, ExpertsThatAreOneTensor) {
  testing::TinyModel mixture;
  mixture.architecture = "qwen2moe";
  nlohmann::json config = MakeHuggingFaceConfig(mixture);
  config["num_experts"] = 1024;
  WriteFile(folder_ + "/config.json", config.dump());
  std::string header;
  int count = 0;
  for (; header.size() < kManyBytes; ++count) {
    absl::StrAppend(
        &header, header.empty() ? "{" : ",", "\"model.layers.", count + 1,
        ".mlp.experts.gate_up_proj\":{\"dtype\":\"BF16\",\"shape\":[1,1,1],"
        "\"data_offsets\":[",
        2 * count, ",", 2 * count + 2, "]}");
  }
  // Those of layers that there are not cost nothing but their names.
  ExpectWeightsRefused(SafetensorsWriter().FinishWithHeader(header + "}") +
                           std::string(2 * count, 0),
                       "tensor model.layers.1.mlp.experts.gate_up_proj has "
                       "the shape [1, 1, 1], expected [1024, 128, 64]");
}

TEST_F(HostileFilesTest, CountsOfGguf) {
  const std::string head = "GGUF" + std::string("\3\0\0\0", 4);
  for (const uint64_t many : {uint64_t{1} << 32, uint64_t{1} << 63}) {
    ExpectGgufRefused(head + U64(many) + U64(0), "the list of tensors has");
    ExpectGgufRefused(head + U64(0) + U64(many), "the metadata has");
  }
  GgufWriter string;
  string.AddRaw("general.architecture", /*type=*/8, U64(uint64_t{1} << 62));
  ExpectGgufRefused(string.Finish(), "takes 4611686018427387904 bytes");
}

TEST_F(HostileFilesTest, ManyThingsInGguf) {
  GgufWriter strings;
  strings.AddStrings("a", std::vector<std::string>(kManyBytes / 8));
  ExpectGgufRefused(strings.Finish(), "general.architecture");
  GgufWriter keys, tensors;
  for (int i = 0; i < kManyBytes / 32; ++i) {
    keys.AddBool(absl::StrCat(i), true);
    tensors.AddTensorInfo(absl::StrCat(i), {1}, /*type=*/0, /*offset=*/0);
  }
  ExpectGgufRefused(keys.Finish(), "general.architecture");
  ExpectGgufRefused(tensors.Finish(), "begins at byte 0");
}

}  // namespace
}  // namespace lockstep
