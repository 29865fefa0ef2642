#include "worker/cuda_engine/weights/device_weights.h"

#include <absl/base/config.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/device/fake_cuda.h"
#include "tests/testing/encode_row.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"
#include "tests/testing/write_file.h"
#include "worker/checkpoint/tensor_part.h"
#include "worker/checkpoint/tensor_source.h"
#include "worker/cuda_engine/weights/weight_upload.h"
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

// A source in which some tensors are rounded to BF16.
class PartlyRounded final : public TensorSource {
 public:
  PartlyRounded(const TensorSource* source, const std::set<std::string>& names)
      : source_(*source) {
    for (const std::string& name : names) {
      const Tensor tensor = Value(source_.Get(name));
      std::vector<float> values(tensor.shape[0] * tensor.shape[1]);
      DecodePart(tensor, WholeOf(tensor), values.data());
      rounded_[name] = testing::EncodeRow(DType::kBF16, values);
    }
  }

  absl::StatusOr<Tensor> Get(absl::string_view name) const override {
    auto tensor = source_.Get(name);
    const auto found = rounded_.find(std::string(name));
    if (found == rounded_.end()) return tensor;
    tensor->type = DType::kBF16;
    tensor->bytes = {reinterpret_cast<const uint8_t*>(found->second.data()),
                     found->second.size()};
    return tensor;
  }
  std::vector<std::string> Names() const override { return source_.Names(); }
  const std::string& path() const override { return source_.path(); }

 private:
  const TensorSource& source_;
  std::map<std::string, std::string> rounded_;
};

// The rows of a part's matrices in fp32, one matrix after another.
std::vector<float> Floats(const cuda::StoredMatrix& part, int matrices) {
  std::vector<float> values(size_t{1} * matrices * part.rows * part.cols);
  const size_t row_bytes = kernels::RowBytes(part.type, part.cols);
  for (int row = 0; row < matrices * part.rows; ++row) {
    kernels::DecodeRow(part.type, part.data + row * row_bytes, part.cols,
                       &values[size_t{1} * row * part.cols]);
  }
  return values;
}

// Gates of one type and ups of another, and downs of both.
TEST_F(DeviceWeightsTest, ExpertsLieBelowEachOtherInOneType) {
  TinyModel tiny;
  tiny.architecture = "qwen2moe";
  const std::string folder = ::testing::TempDir() + "experts";
  testing::WriteHuggingFaceFolder(tiny, folder);
  const ModelFiles model = Value(OpenModel(folder));
  const auto name = [](int expert, const char* projection) {
    return ExpertTensorName(1, "mlp.experts", expert, projection);
  };
  std::set<std::string> rounded = {name(4, "down_proj")};
  for (int i = 0; i < 6; ++i) rounded.insert(name(i, "up_proj"));
  const PartlyRounded source(model.tensors.get(), rounded);
  // The second of two ranks, with whole experts, or with the second half of 64
  // rows of each.
  for (const bool whole : {true, false}) {
    const Shard shard = Value(MakeShard(model.config, model.row_parallel_blocks,
                                        /*rank=*/1, 2, whole));
    const auto weights =
        Value(LoadDeviceWeights(source, model.config, shard, stream_.get()));
    const DeviceExperts& experts = weights->layers[1].experts;
    const int first = whole ? 3 : 0, count = whole ? 3 : 6;
    const int64_t begin = whole ? 0 : 32, size = whole ? 64 : 32;
    const auto expect = [&](const cuda::StoredMatrix& part, DType type,
                            const char* projection, const TensorPart& of) {
      EXPECT_EQ(part.type, type);
      EXPECT_EQ(part.rows, of.rows);
      std::vector<float> expected;
      for (int i = first; i < first + count; ++i) {
        std::vector<float> values(of.rows * of.cols);
        DecodePart(Value(source.Get(name(i, projection))), of, values.data());
        expected.insert(expected.end(), values.begin(), values.end());
      }
      EXPECT_EQ(Floats(part, count), expected);
    };
    ASSERT_EQ(experts.gate_up.parts.size(), 2);
    expect(experts.gate_up.parts[0], DType::kF32, "gate_proj",
           {begin, size, 0, 64});
    expect(experts.gate_up.parts[1], DType::kBF16, "up_proj",
           {begin, size, 0, 64});
    ASSERT_EQ(experts.down.parts.size(), 1);
    expect(experts.down.parts[0], DType::kF32, "down_proj",
           {0, 64, begin, size});
    EXPECT_EQ(experts.router.rows, 6);
    EXPECT_EQ(experts.shared_gate.rows, 1);
  }
}

TEST_F(DeviceWeightsTest, NormsOfOnePlusTheWeightAreAddedUp) {
  TinyModel tiny;
  tiny.architecture = "gemma3";
  const std::string folder = ::testing::TempDir() + "norms";
  testing::WriteHuggingFaceFolder(tiny, folder);
  const ModelFiles model = Value(OpenModel(folder));
  ASSERT_TRUE(model.config.norm_offset);
  const auto weights = Load(model);
  for (const auto& [name, found] :
       {std::pair{"post_feedforward_layernorm",
                  weights->layers[1].mlp_post_norm},
        {"self_attn.k_norm", weights->layers[1].k_norm}}) {
    const Tensor norm = Value(model.tensors->Get(LayerTensorName(1, name)));
    std::vector<float> expected(norm.shape[0]);
    DecodePart(norm, WholeOf(norm), expected.data());
    for (float& value : expected) value += 1;
    EXPECT_EQ(std::vector<float>(found, found + expected.size()), expected);
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
