#include "worker/model_spec/quantization_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {
namespace {

using Method = QuantizationConfig::Method;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::optional<QuantizationConfig>> Read(
    const std::string& quantization) {
  return ReadQuantizationConfig(
      {{"quantization_config", json::parse(quantization)}}, "config.json");
}

// As published, but for fields that are left out.
constexpr char kFp8[] = R"({"quant_method": "fp8", "fmt": "e4m3",
    "activation_scheme": "dynamic", "weight_block_size": [128, 64],
    "modules_to_not_convert": ["lm_head"]})";
constexpr char kGptq[] = R"({"quant_method": "gptq", "bits": 4,
    "group_size": 128, "desc_act": true, "sym": true, "damp_percent": 0.01,
    "true_sequential": true, "dynamic": {"-:.*gate$": {}}})";
constexpr char kAwq[] = R"({"quant_method": "awq", "bits": 4,
    "group_size": 64, "version": "gemm", "zero_point": true,
    "modules_to_not_convert": null})";
constexpr char kCompressed[] = R"({"quant_method": "compressed-tensors",
    "format": "pack-quantized", "ignore": ["lm_head"], "version": "0.9.3",
    "kv_cache_scheme": null, "quantization_status": "compressed",
    "sparsity_config": {}, "config_groups": {"group_0": {
      "input_activations": null, "output_activations": null,
      "targets": ["Linear"], "weights": {"actorder": null, "dynamic": false,
        "block_structure": null, "group_size": 128, "num_bits": 4,
        "observer": "minmax", "observer_kwargs": {}, "strategy": "group",
        "symmetric": false, "type": "int"}}}})";

TEST(QuantizationConfig, IsAbsentFromOtherModels) {
  for (const json& config :
       {json::object(), json{{"quantization_config", nullptr}}}) {
    const auto read = ReadQuantizationConfig(config, "config.json");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_FALSE(read->has_value());
  }
}

TEST(QuantizationConfig, ReadsEachMethodAsPublished) {
  const auto fp8 = Read(kFp8);
  ASSERT_TRUE(fp8.ok()) << fp8.status();
  EXPECT_EQ((*fp8)->method, Method::kFp8);
  EXPECT_TRUE((*fp8)->schemes[0].is_float);
  EXPECT_EQ((*fp8)->schemes[0].group_rows, 128);
  EXPECT_EQ((*fp8)->schemes[0].group_cols, 64);
  EXPECT_THAT((*fp8)->plain_modules, ElementsAre("lm_head"));

  const auto gptq = Read(kGptq);
  ASSERT_TRUE(gptq.ok()) << gptq.status();
  EXPECT_EQ((*gptq)->method, Method::kGptq);
  EXPECT_EQ((*gptq)->schemes[0].bits, 4);
  EXPECT_EQ((*gptq)->schemes[0].group_cols, 128);
  EXPECT_EQ((*gptq)->zero_offset, 1);

  const auto awq = Read(kAwq);
  ASSERT_TRUE(awq.ok()) << awq.status();
  EXPECT_EQ((*awq)->method, Method::kAwq);
  EXPECT_EQ((*awq)->schemes[0].group_cols, 64);
  EXPECT_EQ((*awq)->zero_offset, 0);

  const auto compressed = Read(kCompressed);
  ASSERT_TRUE(compressed.ok()) << compressed.status();
  EXPECT_EQ((*compressed)->method, Method::kCompressedTensors);
  EXPECT_FALSE((*compressed)->schemes[0].is_float);
  EXPECT_TRUE((*compressed)->schemes[0].has_zeros);
  EXPECT_THAT((*compressed)->plain_modules, ElementsAre("lm_head"));
}

// JSON of `text` with the value at `pointer` replaced.
std::string With(const char* text, const char* pointer, const json& value) {
  json changed = json::parse(text);
  changed[json::json_pointer(pointer)] = value;
  return changed.dump();
}

TEST(QuantizationConfig, GptqVersionsDifferInZeroPoints) {
  for (const char* field : {"/checkpoint_format", "/format"}) {
    EXPECT_EQ((*Read(With(kGptq, field, "gptq_v2")))->zero_offset, 0);
    EXPECT_EQ((*Read(With(kGptq, field, "gptq")))->zero_offset, 1);
  }
}

TEST(QuantizationConfig, AGroupOfMinusOneIsARow) {
  EXPECT_EQ((*Read(With(kGptq, "/group_size", -1)))->schemes[0].group_cols, 0);
}

TEST(QuantizationConfig, IsFoundInTheTextPart) {
  const json config = {
      {"text_config", {{"quantization_config", json::parse(kAwq)}}}};
  const auto read = ReadQuantizationConfig(config, "config.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->has_value());
}

TEST(QuantizationConfig, RefusesByNameWhatItDoesNotKnow) {
  constexpr char kWeights[] = "/config_groups/group_0/weights";
  const std::string weights = kWeights;
  const struct {
    const char* base;
    std::string pointer;
    json value;
    const char* message;
  } cases[] = {
      {kFp8, "/quant_method", "bitsandbytes",
       "\"quant_method\" is \"bitsandbytes\", which is not supported; "
       "supported: fp8, gptq, awq, compressed-tensors."},
      {kFp8, "/fmt", "e5m2", "\"fmt\" is \"e5m2\""},
      {kFp8, "/activation_scheme", "none", "\"activation_scheme\" is"},
      {kFp8, "/weight_block_size", json::array({128}),
       "\"weight_block_size\" is a list, expected a list of two sizes"},
      {kFp8, "/weight_block_size", json::array({0, 128}),
       "\"weight_block_size\" is a list"},
      {kFp8, "/weight_block_size", json::array({1ull << 62, 128}),
       "\"weight_block_size\" is a list"},
      {kFp8, "/modules_to_not_convert", "lm_head",
       "\"modules_to_not_convert\" is \"lm_head\", expected a list of names"},
      {kFp8, "/kv_cache_scheme", {{"num_bits", 8}}, "\"kv_cache_scheme\""},
      {kFp8, "/new_field", 1, "\"new_field\" is 1, which is not supported"},
      {kGptq, "/bits", 3,
       "\"bits\" is 3, which is not supported; supported: 4, 8."},
      {kGptq, "/bits", nullptr, "\"bits\" is missing"},
      {kGptq, "/group_size", 0, "\"group_size\" is 0"},
      {kGptq, "/group_size", 1ull << 63, "\"group_size\""},
      {kGptq, "/desc_act", 3, "\"desc_act\" is 3, expected true or false"},
      {kGptq, "/checkpoint_format", "marlin", "\"checkpoint_format\""},
      {kGptq, "/is_marlin_format", true, "\"is_marlin_format\" is true"},
      {kGptq, "/pack_dtype", "int16", "\"pack_dtype\" is \"int16\""},
      {kGptq, "/dynamic", {{"+:.*", {{"bits", 8}}}}, "\"dynamic\""},
      {kAwq, "/bits", 8, "\"bits\" is 8, which is not supported; supported: 4"},
      {kAwq, "/version", "gemv", "\"version\" is \"gemv\""},
      {kAwq, "/zero_point", false, "\"zero_point\" is false"},
      {kCompressed, "/format", "marlin-24", "\"format\" is \"marlin-24\""},
      {kCompressed, "/quantization_status", "initialized",
       "\"quantization_status\""},
      {kCompressed,
       "/sparsity_config",
       {{"format", "sparse-24-bitmask"}},
       "\"sparsity_config\""},
      {kCompressed,
       "/transform_config",
       {{"config_groups", {{"a", 1}}}},
       "\"transform_config\""},
      {kCompressed,
       "/kv_cache_scheme",
       {{"num_bits", 8}},
       "\"kv_cache_scheme\""},
      {kCompressed, "/config_groups", nullptr, "\"config_groups\" is missing"},
      {kCompressed, "/config_groups/group_0/weights", nullptr,
       "\"weights\" is missing"},
      {kCompressed, "/config_groups/group_0/format", "nvfp4-pack-quantized",
       "\"format\" is \"nvfp4-pack-quantized\""},
      {kCompressed, weights + "/num_bits", 2, "\"num_bits\" is 2"},
      {kCompressed, weights + "/type", "complex", "\"type\" is \"complex\""},
      {kCompressed, weights + "/dynamic", true, "\"dynamic\" is true"},
      {kCompressed, weights + "/strategy", "token", "\"strategy\" is"},
      {kCompressed, weights + "/strategy", "block",
       "\"block_structure\" is missing"},
      {kCompressed, weights + "/more", 1, "\"more\" is 1"},
  };
  for (const auto& [base, pointer, value, message] : cases) {
    SCOPED_TRACE(message);
    const auto read = Read(With(base, pointer.c_str(), value));
    ASSERT_FALSE(read.ok());
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(message));
    EXPECT_THAT(std::string(read.status().message()),
                HasSubstr("config.json, in \"quantization_config\""));
  }
}

}  // namespace
}  // namespace lockstep
