#include "worker/cuda_engine/device_weights.h"

#include <absl/base/config.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/device/fake_cuda.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"
#include "tests/testing/write_file.h"
#include "worker/checkpoint/tensor_part.h"
#include "worker/cuda_engine/weight_upload.h"
#include "worker/device/cuda_device.h"
#include "worker/device/cuda_driver.h"
#include "worker/device/cuda_stream.h"
#include "worker/model_spec/shard.h"
#include "worker/model_spec/tensor_names.h"
#include "worker/weights/model_files.h"
#include "worker/weights/tensor_table.h"

namespace lockstep {
namespace {

using kernels::DType;
using testing::TinyModel;

template <typename T>
T Value(absl::StatusOr<T> result) {
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

// The fake's memory is the host's.
class DeviceWeightsTest : public ::testing::Test {
 protected:
  DeviceWeightsTest() {
    fake_.SetMachine(/*devices=*/1, /*driver_version=*/13000, int64_t{1} << 31);
  }

  static ModelFiles Write(const TinyModel& tiny) {
    const std::string path = ::testing::TempDir() + "model.gguf";
    testing::WriteGguf(tiny, path);
    return Value(OpenModel(path));
  }

  std::unique_ptr<DeviceWeights> Load(const ModelFiles& model, int rank = 0,
                                      int size = 1) {
    const Shard shard =
        Value(MakeShard(model.config, model.row_parallel_blocks, rank, size));
    auto weights = Value(
        LoadDeviceWeights(*model.tensors, model.config, shard, stream_.get()));
    EXPECT_EQ(Value(DeviceWeightBytes(*model.tensors, model.config, shard)),
              weights->arena->bytes());
    return weights;
  }

  FakeCuda fake_;
  const std::unique_ptr<CudaDriver> driver_ =
      Value(CudaDriver::Load(fake_.library()));
  const std::unique_ptr<CudaDevice> device_ =
      Value(CudaDevice::Open(driver_.get(), 0));
  const std::unique_ptr<CudaStream> stream_ =
      Value(CudaStream::Create(device_.get()));
};

std::vector<uint8_t> Bytes(const cuda::StoredMatrix& matrix) {
  return {
      matrix.data,
      matrix.data + matrix.rows * kernels::RowBytes(matrix.type, matrix.cols)};
}

std::vector<uint8_t> Stored(const ModelFiles& model, const std::string& name,
                            const TensorPart& part) {
  const Tensor tensor = Value(model.tensors->Get(name));
  std::vector<uint8_t> bytes(part.rows *
                             kernels::RowBytes(tensor.type, part.cols));
  ReadPart(tensor, part, bytes.data());
  return bytes;
}

TEST_F(DeviceWeightsTest, LieAsTheyAreStored) {
  TinyModel tiny;
  tiny.type = DType::kQ8_0;
  const ModelFiles model = Write(tiny);
  for (int rank : {0, 1}) {
    const auto weights = Load(model, rank, /*size=*/2);
    ASSERT_EQ(weights->layers.size(), 2);
    const DeviceLayer& layer = weights->layers[1];
    // Of the rank's four of eight query heads, and one of two others.
    ASSERT_EQ(layer.qkv.parts.size(), 1);
    const cuda::StoredMatrix& qkv = layer.qkv.parts[0];
    EXPECT_EQ(qkv.type, DType::kQ8_0);
    EXPECT_EQ(qkv.rows, (4 + 2) * 16);
    std::vector<uint8_t> expected = Stored(
        model, LayerTensorName(1, "self_attn.q_proj"), {64 * rank, 64, 0, 64});
    for (const char* name : {"self_attn.k_proj", "self_attn.v_proj"}) {
      const auto more =
          Stored(model, LayerTensorName(1, name), {16 * rank, 16, 0, 64});
      expected.insert(expected.end(), more.begin(), more.end());
    }
    EXPECT_EQ(Bytes(qkv), expected);
    EXPECT_EQ(Bytes(layer.o.parts[0]),
              Stored(model, LayerTensorName(1, "self_attn.o_proj"),
                     {0, 64, 64 * rank, 64}));
    EXPECT_EQ(Bytes(weights->head),
              Stored(model, kHeadName, {256 * rank, 256, 0, 64}));
  }
}

TEST_F(DeviceWeightsTest, EveryTypeLiesAsItIsStored) {
  for (DType type :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0,
        DType::kQ4_1, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K}) {
    SCOPED_TRACE(kernels::DTypeName(type));
    TinyModel tiny;
    tiny.type = type;
    tiny.hidden_size = 256;
    tiny.num_heads = 16;
    tiny.intermediate_size = 256;
    const ModelFiles model = Write(tiny);
    const auto weights = Load(model);
    const cuda::StoredMatrix& down = weights->layers[0].down.parts[0];
    EXPECT_EQ(down.type, type);
    EXPECT_EQ(Bytes(down), Stored(model, LayerTensorName(0, "mlp.down_proj"),
                                  {0, 256, 0, 256}));
    EXPECT_EQ(weights->embedding.type, type);
  }
}

TEST_F(DeviceWeightsTest, AHeadThatIsTheEmbeddingLiesThereOnce) {
  TinyModel tiny, apart;
  tiny.tied_embeddings = true;
  const auto weights = Load(Write(tiny));
  EXPECT_EQ(weights->head.data, weights->embedding.data);
  EXPECT_EQ(weights->arena->bytes() + 512 * 64 * sizeof(float),
            Load(Write(apart))->arena->bytes());
}

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

TEST_F(DeviceWeightsTest, TakeTwoBuffersOfTheHostAtMost) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  GTEST_SKIP() << "a sanitizer's shadow is memory, too";
#endif
  TinyModel tiny;
  tiny.hidden_size = 1024;
  tiny.num_heads = 16;
  tiny.head_dim = 64;
  tiny.intermediate_size = 4096;
  const std::string folder = ::testing::TempDir() + "large";
  std::filesystem::create_directories(folder);
  testing::WriteFile(folder + "/config.json",
                     testing::MakeHuggingFaceConfig(tiny).dump());
  const auto model = Value(OpenModel(folder, 0, {.random = true}));
  std::ofstream("/proc/self/clear_refs") << "5";  // VmHWM is VmRSS again
  const int64_t before = MemoryKib("VmRSS");
  const auto weights = Load(model);
  const int64_t used = (MemoryKib("VmHWM") - before) << 10;
  const int64_t on_device = weights->arena->bytes();
  EXPECT_GE(used, on_device);
  EXPECT_LE(used,
            on_device + 2 * int64_t{WeightUpload::kUsualBytes} + (1 << 20));
  EXPECT_GT(on_device, 8 * WeightUpload::kUsualBytes) << "too small to tell";
}

}  // namespace
}  // namespace lockstep
