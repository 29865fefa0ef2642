#include "tools/models/model_list.h"

#include <absl/strings/match.h>
#include <gtest/gtest.h>

#include "tests/testing/write_file.h"

namespace lockstep {
namespace {

constexpr char kTiny[] = "tests/goldens/tiny/qwen3/bf16";
constexpr int64_t kEnough = int64_t{8} << 30;

TEST(ModelListTest, SaysWhatAWorkerWouldTake) {
  const std::string table =
      ModelTable({{.name = "o/n", .path = kTiny, .bytes = 3 << 20}}, kEnough);
  EXPECT_TRUE(absl::StrContains(table, "fits in 8.0 GiB")) << table;
  EXPECT_TRUE(absl::StrContains(table, "o/n    3.0 MiB")) << table;
  EXPECT_TRUE(absl::StrContains(table, " yes  safetensors BF16")) << table;
}

TEST(ModelListTest, SaysWhatDoesNotFit) {
  const std::string table =
      ModelTable({{.name = "o/n", .path = kTiny}}, 16 << 20);
  EXPECT_TRUE(absl::StrContains(table, " no  safetensors BF16")) << table;
}

TEST(ModelListTest, SaysWhatAWorkerRefuses) {
  const std::string folder = ::testing::TempDir() + "/odd";
  testing::WriteFile(folder + "/config.json",
                     R"({"architectures":["OddForCausalLM"]})");
  const std::string table =
      ModelTable({{.name = "o/odd", .path = folder}}, kEnough);
  EXPECT_TRUE(absl::StrContains(table, "OddForCausalLM")) << table;
}

}  // namespace
}  // namespace lockstep
