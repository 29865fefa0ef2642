#include <absl/base/config.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "tests/testing/memory/peak_memory.h"
#include "tests/testing/tiny_model.h"
#include "tests/testing/write_file.h"
#include "worker/weights/model_files.h"
#include "worker/weights/model_weights.h"

namespace lockstep {
namespace {

TEST(LoadWeights, TakesTheMemoryOfWhatIsPackedAndOfATensorAtMost) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  GTEST_SKIP() << "a sanitizer's shadow and what it keeps are no less";
#endif
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
  const lockstep::testing::PeakMemory peak;
  const auto weights = LoadWeights(*model->tensors, model->config, shard);
  ASSERT_TRUE(weights.ok()) << weights.status();
  const int64_t packed =
      PackedBytes(*model->tensors, model->config, kernels::Arithmetic::kStrict);
  const int64_t tensor = 1024 * 4096 * sizeof(float);
  const int64_t grown = peak.GrownBytes();
  EXPECT_GE(grown, packed);
  EXPECT_LE(grown, packed + tensor);
}

}  // namespace
}  // namespace lockstep
