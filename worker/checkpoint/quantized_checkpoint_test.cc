#include "worker/checkpoint/quantized_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/weights/dtype.h"
#include "tests/testing/safetensors_writer.h"
#include "tests/testing/write_file.h"
#include "worker/checkpoint/safetensors_folder.h"
#include "worker/checkpoint/tensor_part.h"

// The values that the formats hold are checked by the quantized models of
// tests/goldens; this is about what lies around them.
namespace lockstep {
namespace {

using ::lockstep::testing::SafetensorsWriter;
using ::lockstep::testing::WriteFile;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Stored {
  std::string type;
  std::vector<int64_t> shape;
  std::string bytes;
};
using Parts = std::map<std::string, Stored>;

std::string Repeated(uint32_t word, int times) {
  std::string bytes;
  for (int i = 0; i < times; ++i) {
    bytes.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  return bytes;
}

std::string Numbers(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(float));
}

absl::StatusOr<std::unique_ptr<QuantizedCheckpoint>> Open(
    const json& quantization, const Parts& parts) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder = ::testing::TempDir() + test->name();
  std::filesystem::create_directories(folder);
  SafetensorsWriter writer;
  for (const auto& [name, stored] : parts) {
    writer.AddTensor(name, stored.type, stored.shape, stored.bytes);
  }
  WriteFile(folder + "/model.safetensors", writer.Finish());
  auto stored = SafetensorsFolder::Open(folder);
  if (!stored.ok()) return stored.status();
  const auto config = ReadQuantizationConfig(
      {{"quantization_config", quantization}}, "config.json");
  if (!config.ok()) return config.status();
  return QuantizedCheckpoint::Create(*std::move(stored), **config);
}

std::vector<float> Values(const Tensor& tensor) {
  const TensorPart whole = WholeOf(tensor);
  std::vector<float> values(whole.rows * whole.cols);
  DecodePart(tensor, whole, values.data());
  return values;
}

const json kGptqConfig = {
    {"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}};
// [8, 64]: all integers 11, zeros 8, scales 0.5.
Parts Gptq() {
  return {{"a.qweight", {"I32", {8, 8}, Repeated(0xbbbbbbbb, 64)}},
          {"a.qzeros", {"I32", {2, 1}, Repeated(0x77777777, 2)}},
          {"a.scales", {"F16", {2, 8}, Repeated(0x38003800, 8)}},
          {"a.g_idx", {"I32", {64}, Repeated(0, 32) + Repeated(1, 32)}},
          {"norm.weight", {"F32", {2}, Numbers({1, 2})}}};
}

const json kFp8Config = {{"quant_method", "fp8"},
                         {"weight_block_size", {2, 2}}};
// [3, 3] of ones, and blocks of scales.
Parts Fp8() {
  return {{"a.weight", {"F8_E4M3", {3, 3}, std::string(9, 0x38)}},
          {"a.weight_scale_inv", {"F32", {2, 2}, Numbers({1, 2, 3, 4})}}};
}

json Compressed(const json& weights, const std::string& format) {
  return {{"quant_method", "compressed-tensors"},
          {"format", format},
          {"config_groups",
           {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}}}}}};
}
const json kPackedConfig = Compressed({{"num_bits", 4},
                                       {"type", "int"},
                                       {"strategy", "group"},
                                       {"group_size", 32}},
                                      "pack-quantized");
const json kInt8Config =
    Compressed({{"num_bits", 8}, {"type", "int"}, {"strategy", "channel"}},
               "int-quantized");
// [2, 32]
Parts PackedParts() {
  const int64_t shape[] = {2, 32};
  return {
      {"a.weight_packed", {"I32", {2, 4}, Repeated(0x99999999, 8)}},
      {"a.weight_scale", {"F32", {2, 1}, Numbers({2, 4})}},
      {"a.weight_shape",
       {"I64", {2}, std::string(reinterpret_cast<const char*>(shape), 16)}}};
}
Parts Int8() {
  return {{"a.weight", {"I8", {2, 2}, std::string("\x01\xff\x02\x80", 4)}},
          {"a.weight_scale", {"F32", {2, 1}, Numbers({2, 0.5})}}};
}

TEST(QuantizedCheckpoint, ShowsWeightsInPlaceOfTheirParts) {
  const auto checkpoint = Open(kGptqConfig, Gptq());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT((*checkpoint)->Names(), ElementsAre("a.weight", "norm.weight"));
  const auto weight = (*checkpoint)->Get("a.weight");
  ASSERT_TRUE(weight.ok()) << weight.status();
  EXPECT_THAT(weight->shape, ElementsAre(8, 64));
  EXPECT_EQ(weight->type, kernels::DType::kQ4_0);
  EXPECT_EQ(FormatName(*weight), "GPTQ-INT4");
  EXPECT_THAT(Values(*weight), ::testing::Each(1.5f));
  EXPECT_THAT(Values(*(*checkpoint)->Get("norm.weight")), ElementsAre(1, 2));
  EXPECT_EQ((*checkpoint)->stored().Names().size(), 5);
  EXPECT_THAT((*checkpoint)->FileOf("a.weight"), HasSubstr(".safetensors"));
  EXPECT_FALSE((*checkpoint)->Get("b.weight").ok());
}

TEST(QuantizedCheckpoint, ABiasOfZerosIsNone) {
  Parts parts = Gptq();
  parts["a.bias"] = {"F16", {8}, std::string(16, '\0')};
  EXPECT_THAT((*Open(kGptqConfig, parts))->Names(),
              ElementsAre("a.weight", "norm.weight"));
  parts["a.bias"].bytes[3] = 0x38;
  EXPECT_THAT((*Open(kGptqConfig, parts))->Names(),
              ElementsAre("a.bias", "a.weight", "norm.weight"));
}

TEST(QuantizedCheckpoint, BlocksOfFloatsMayEndEarly) {
  const auto checkpoint = Open(kFp8Config, Fp8());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT(Values(*(*checkpoint)->Get("a.weight")),
              ElementsAre(1, 1, 2, 1, 1, 2, 3, 3, 4));
}

TEST(QuantizedCheckpoint, ScalesAreOfATensorOrOfRowsToo) {
  const json config = {{"quant_method", "fp8"}};
  for (const auto& [shape, scales, last] :
       {std::tuple{std::vector<int64_t>{}, std::vector<float>{5}, 5.0f},
        {{1}, {5}, 5.0f},
        {{3}, {1, 2, 3}, 3.0f},
        {{3, 1}, {1, 2, 3}, 3.0f}}) {
    Parts parts = Fp8();
    parts.erase("a.weight_scale_inv");
    parts["a.weight_scale"] = {"F32", shape, Numbers(scales)};
    parts["a.input_scale"] = {"F32", {1}, Numbers({9})};  // of activations
    const auto checkpoint = Open(config, parts);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ(Values(*(*checkpoint)->Get("a.weight"))[8], last);
  }
}

TEST(QuantizedCheckpoint, TakesTheGroupOfTheConfigThatFits) {
  json config = kInt8Config;
  config["config_groups"]["group_1"] =
      kPackedConfig["config_groups"]["group_0"];
  config["format"] = "mixed-precision";
  Parts parts = Int8();
  for (auto& [name, stored] : PackedParts()) {
    parts["b" + name.substr(1)] = stored;
  }
  const auto checkpoint = Open(config, parts);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT(Values(*(*checkpoint)->Get("a.weight")),
              ElementsAre(2, -2, 1, -64));
  const std::vector<float> packed = Values(*(*checkpoint)->Get("b.weight"));
  EXPECT_EQ(packed.front(), 2);
  EXPECT_EQ(packed.back(), 4);
}

TEST(QuantizedCheckpoint, RefusesPartsThatDoNotFit) {
  const struct {
    json config;
    Parts parts;
    std::function<void(Parts&)> change;
    const char* message;
  } cases[] = {
      {kGptqConfig, Gptq(), [](Parts& p) { p.erase("a.qzeros"); },
       "model.safetensors: tensor a.qzeros: it is missing."},
      {kGptqConfig, Gptq(), [](Parts& p) { p.erase("a.qweight"); },
       "tensor a.qweight: it is missing."},
      {kGptqConfig, Gptq(),
       [](Parts& p) {
         p["a.qweight"] = {"I32", {64}, Repeated(0, 64)};
       },
       "tensor a.qweight: it is no matrix."},
      {kGptqConfig, Gptq(), [](Parts& p) { p["a.qweight"].type = "F32"; },
       "tensor a.qweight: it is of type F32, expected I32."},
      {kGptqConfig, Gptq(),
       [](Parts& p) {
         p["a.qzeros"] = {"I32", {1, 1}, Repeated(0, 1)};
       },
       "tensor a.qzeros: it has the shape [1, 1], expected [2, 1]."},
      {kGptqConfig, Gptq(),
       [](Parts& p) {
         p["a.scales"].shape = {8, 2};
       },
       "tensor a.scales: it has the shape [8, 2], expected [2, 8]."},
      {kGptqConfig, Gptq(),
       [](Parts& p) { p["a.g_idx"].bytes = Repeated(2, 64); },
       "tensor a.g_idx: column 0 is of group 2, expected 0 to 1."},
      {kGptqConfig, Gptq(),
       [](Parts& p) { p["a.g_idx"].bytes = Repeated(~0u, 64); },
       "tensor a.g_idx: column 0 is of group -1, expected 0 to 1."},
      {kGptqConfig, Gptq(),
       [](Parts& p) {
         p["a.weight"] = {"F32", {1}, Numbers({1})};
       },
       "its module has a weight as well"},
      {kFp8Config, Fp8(), [](Parts& p) { p.erase("a.weight_scale_inv"); },
       "tensor a.weight_scale: it is missing."},
      {kFp8Config, Fp8(), [](Parts& p) { p.erase("a.weight"); },
       "tensor a.weight: it is missing."},
      {kFp8Config, Fp8(), [](Parts& p) { p["a.weight"].type = "I8"; },
       "tensor a.weight: it is of type I8, expected F8_E4M3."},
      {kFp8Config, Fp8(),
       [](Parts& p) {
         p["a.weight_scale_inv"].shape = {4, 1};
       },
       "tensor a.weight_scale_inv: it has the shape [4, 1], expected [2, 2]."},
      {kPackedConfig, PackedParts(),
       [](Parts& p) { p["a.weight_shape"].bytes = std::string(16, '\xff'); },
       "tensor a.weight_shape: it is [-1, -1], expected sizes below 2^24."},
      {kPackedConfig, PackedParts(),
       [](Parts& p) { p["a.weight_shape"].bytes[0] = 3; },
       "tensor a.weight_packed: it has the shape [2, 4], expected [3, 4]."},
      {kPackedConfig, PackedParts(),
       [](Parts& p) { p["a.weight_shape"].bytes[8] = 33; },
       "tensor a.weight_packed: it has the shape [2, 4], expected [2, 5]."},
      {kPackedConfig, PackedParts(),
       [](Parts& p) {
         p["a.weight_scale"] = {"F32", {2, 2}, Numbers({1, 2, 3, 4})};
       },
       "tensor a.weight_scale: it has the shape [2, 2], expected [2, 1]."},
      {kPackedConfig, PackedParts(),
       [](Parts& p) {
         p["a.weight_zero_point"] = {"I32", {2, 1}, Repeated(0, 2)};
       },
       "tensor a.weight_zero_point: it has the shape [2, 1], expected [1, 1]."},
      {kInt8Config, Int8(), [](Parts& p) { p["a.weight"].type = "F8_E4M3"; },
       "tensor a.weight: no group of the quantization_config is of its type."},
  };
  for (const auto& [config, parts, change, message] : cases) {
    SCOPED_TRACE(message);
    Parts changed = parts;
    change(changed);
    const auto checkpoint = Open(config, changed);
    EXPECT_EQ(checkpoint.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(checkpoint.status().message()), HasSubstr(message));
  }
}

TEST(QuantizedCheckpoint, ZerosThatTheConfigPromisesMustBeThere) {
  json config = kPackedConfig;
  config["config_groups"]["group_0"]["weights"]["symmetric"] = false;
  EXPECT_THAT(std::string(Open(config, PackedParts()).status().message()),
              HasSubstr("tensor a.weight_zero_point: it is missing."));
}

TEST(QuantizedCheckpoint, ZerosMayBePackedOrBytes) {
  json config = kPackedConfig;
  config["config_groups"]["group_0"]["weights"]["symmetric"] = false;
  for (const auto& [zeros, first, last] :
       {std::tuple{Stored{"I32", {1, 1}, Repeated(0x6a, 1)}, -2.0f, 12.0f},
        {Stored{"I8", {2, 1}, "\x02\xfe"}, -2.0f, 12.0f}}) {
    Parts parts = PackedParts();  // integers of 1, scales of 2 and 4
    parts["a.weight_zero_point"] = zeros;
    const auto checkpoint = Open(config, parts);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const std::vector<float> values = Values(*(*checkpoint)->Get("a.weight"));
    EXPECT_EQ(values.front(), first);
    EXPECT_EQ(values.back(), last);
  }
}

TEST(QuantizedCheckpoint, WhatIsSaidNotToBeQuantizedMustNotBe) {
  json config = kFp8Config;
  config["modules_to_not_convert"] = {"a"};
  EXPECT_THAT(
      std::string(Open(config, Fp8()).status().message()),
      HasSubstr("the quantization_config says its module is not quantized"));
  config["modules_to_not_convert"] = {"lm_head"};
  EXPECT_TRUE(Open(config, Fp8()).ok());
}

}  // namespace
}  // namespace lockstep
