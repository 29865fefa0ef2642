#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/testing/tiny_model.h"
#include "tests/testing/write_file.h"
#include "worker/weights/model_files.h"
#include "worker/weights/model_weights.h"

namespace lockstep {
namespace {

// In KiB, of this process: VmRSS, or VmHWM, the most that it has been.
int64_t MemoryKib(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != field + ":") continue;
    int64_t kib = 0;
    status >> kib;
    return kib;
  }
  return -1;
}

TEST(LoadWeights, TakesTheMemoryOfWhatIsPackedAndOfATensorAtMost) {
  lockstep::testing::TinyModel tiny;
  tiny.hidden_size = 1024;
  tiny.num_heads = 16;
  tiny.head_dim = 64;
  tiny.intermediate_size = 4096;
  const std::string folder = ::testing::TempDir() + "large";
  std::filesystem::create_directories(folder);
  lockstep::testing::WriteFile(
      folder + "/config.json",
      lockstep::testing::MakeHuggingFaceConfig(tiny).dump());
  const auto model = OpenModel(
      folder, 0, {.rounded_to = kernels::DType::kQ4_0, .random = true});
  ASSERT_TRUE(model.ok()) << model.status();
  const Shard shard =
      *MakeShard(model->config, model->row_parallel_blocks, 0, 1);
  std::ofstream("/proc/self/clear_refs") << "5";  // VmHWM is VmRSS again
  const int64_t before = MemoryKib("VmRSS");
  const auto weights = LoadWeights(*model->tensors, model->config, shard);
  ASSERT_TRUE(weights.ok()) << weights.status();
  const int64_t packed =
      PackedBytes(*model->tensors, model->config, kernels::Arithmetic::kStrict);
  const int64_t tensor = 1024 * 4096 * sizeof(float);
  EXPECT_GE(MemoryKib("VmHWM") - before, packed >> 10);
  EXPECT_LE(MemoryKib("VmHWM") - before, (packed + tensor) >> 10);
}

}  // namespace
}  // namespace lockstep
