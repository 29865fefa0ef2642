#include "worker/checkpoint/fused_experts.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/safetensors_writer.h"
#include "tests/testing/write_file.h"
#include "worker/checkpoint/safetensors_folder.h"

namespace lockstep {
namespace {

using ::lockstep::testing::SafetensorsWriter;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kGateUp[] = "model.layers.1.mlp.experts.gate_up_proj";
constexpr char kDown[] = "model.layers.1.mlp.experts.down_proj";

// Two experts in the second of two layers.
ModelConfig Config() {
  ModelConfig config;
  config.num_layers = 2;
  config.layers = {{}, {.has_experts = true}};
  config.hidden_size = 2;
  config.experts = {
      .num_experts = 2, .experts_per_token = 1, .intermediate_size = 3};
  return config;
}

// `count` halves: the bytes tell where in the file a part has come from.
std::string Halves(int first, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    bytes += absl::StrCat(absl::Hex(first + i, absl::kZeroPad2));
  }
  return bytes;
}

SafetensorsWriter Fused() {
  SafetensorsWriter writer;
  writer.AddTensor(kGateUp, "BF16", {2, 6, 2}, Halves(0, 24));
  writer.AddTensor(kDown, "BF16", {2, 2, 3}, Halves(100, 12));
  return writer;
}

std::unique_ptr<TensorSource> SourceOf(const SafetensorsWriter& writer) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder = ::testing::TempDir() + test->name();
  std::filesystem::create_directories(folder);
  testing::WriteFile(folder + "/model.safetensors", writer.Finish());
  auto source = SafetensorsFolder::Open(folder);
  EXPECT_TRUE(source.ok()) << source.status();
  return *std::move(source);
}

std::string BytesOf(const TensorSource& source, absl::string_view name) {
  const auto tensor = source.Get(name);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  if (!tensor.ok()) return "";
  EXPECT_EQ(tensor->name, name);
  EXPECT_EQ(tensor->type, kernels::DType::kBF16);
  return std::string(reinterpret_cast<const char*>(tensor->bytes.data()),
                     tensor->bytes.size());
}

void ExpectRefused(const SafetensorsWriter& writer, const std::string& message,
                   const ModelConfig& config = Config()) {
  const auto source = FusedExperts::Create(SourceOf(writer), config);
  EXPECT_EQ(source.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(source.status().message()), HasSubstr(message));
  EXPECT_THAT(std::string(source.status().message()),
              HasSubstr("/model.safetensors: tensor "));
}

TEST(FusedExperts, ShowsEachExpertWhereItLies) {
  SafetensorsWriter writer = Fused();
  writer.AddTensor("model.norm.weight", "BF16", {2}, "abcd");
  auto stored = SourceOf(writer);
  ASSERT_TRUE(HasFusedExperts(*stored));
  const auto source = FusedExperts::Create(std::move(stored), Config());
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT((*source)->Names(),
              ElementsAre("model.layers.1.mlp.experts.0.down_proj.weight",
                          "model.layers.1.mlp.experts.0.gate_proj.weight",
                          "model.layers.1.mlp.experts.0.up_proj.weight",
                          "model.layers.1.mlp.experts.1.down_proj.weight",
                          "model.layers.1.mlp.experts.1.gate_proj.weight",
                          "model.layers.1.mlp.experts.1.up_proj.weight",
                          "model.norm.weight"));
  const auto of_expert = [&](const char* name) {
    const std::string full =
        absl::StrCat("model.layers.1.mlp.experts.", name, ".weight");
    EXPECT_THAT((*source)->FileOf(full), HasSubstr("/model.safetensors"));
    return BytesOf(**source, full);
  };
  EXPECT_EQ(of_expert("0.gate_proj"), Halves(0, 6));
  EXPECT_EQ(of_expert("0.up_proj"), Halves(6, 6));
  EXPECT_EQ(of_expert("1.gate_proj"), Halves(12, 6));
  EXPECT_EQ(of_expert("1.up_proj"), Halves(18, 6));
  EXPECT_EQ(of_expert("0.down_proj"), Halves(100, 6));
  EXPECT_EQ(of_expert("1.down_proj"), Halves(106, 6));
  EXPECT_THAT(
      (*source)->Get("model.layers.1.mlp.experts.1.up_proj.weight")->shape,
      ElementsAre(3, 2));
  EXPECT_THAT(
      (*source)->Get("model.layers.1.mlp.experts.1.down_proj.weight")->shape,
      ElementsAre(2, 3));
}

TEST(FusedExperts, RouterAndExpertsGetTheNamesOfTheArchitecture) {
  ModelConfig config = Config();
  config.names.router = "block_sparse_moe.gate";
  config.names.experts = "block_sparse_moe.experts";
  config.names.expert_gate = "w1";
  config.names.expert_up = "w3";
  config.names.expert_down = "w2";
  SafetensorsWriter writer = Fused();
  writer.AddTensor("model.layers.1.mlp.gate.weight", "BF16", {2, 2},
                   Halves(200, 4));
  const auto source = FusedExperts::Create(SourceOf(writer), config);
  ASSERT_TRUE(source.ok()) << source.status();
  const std::string prefix = "model.layers.1.block_sparse_moe.";
  EXPECT_EQ(BytesOf(**source, prefix + "gate.weight"), Halves(200, 4));
  EXPECT_EQ(BytesOf(**source, prefix + "experts.1.w3.weight"), Halves(18, 6));
  EXPECT_EQ((*source)->Names().size(), 7);
}

TEST(FusedExperts, OtherLayersStayAsTheyAre) {
  SafetensorsWriter writer = Fused();
  const std::string of_dense = "model.layers.0.mlp.experts.down_proj";
  writer.AddTensor(of_dense, "BF16", {1, 1, 1}, "ab");
  const auto source = FusedExperts::Create(SourceOf(writer), Config());
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(BytesOf(**source, of_dense), "ab");
}

TEST(FusedExperts, WhatIsMissingOrMisshapenIsNamed) {
  SafetensorsWriter writer;
  writer.AddTensor(kDown, "BF16", {2, 2, 3}, Halves(0, 12));
  ExpectRefused(writer, absl::StrCat("tensor ", kGateUp,
                                     " is missing, expected one of shape "
                                     "[2, 6, 2]."));
  writer = {};
  writer.AddTensor(kGateUp, "BF16", {2, 6, 2}, Halves(0, 24));
  ExpectRefused(writer, absl::StrCat("tensor ", kDown, " is missing"));
  // As models other than these have them: a column for each output.
  writer = {};
  writer.AddTensor(kGateUp, "BF16", {2, 2, 6}, Halves(0, 24));
  writer.AddTensor(kDown, "BF16", {2, 3, 2}, Halves(0, 12));
  ExpectRefused(writer, absl::StrCat("tensor ", kGateUp,
                                     " has the shape [2, 2, 6], expected "
                                     "[2, 6, 2]."));
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {12}, {4, 3}, {1, 4, 3}, {1, 2, 2, 3}}) {
    writer = {};
    writer.AddTensor(kGateUp, "BF16", {2, 6, 2}, Halves(0, 24));
    int64_t size = 1;
    for (const int64_t dimension : shape) size *= dimension;
    writer.AddTensor(kDown, "BF16", shape, Halves(0, static_cast<int>(size)));
    ExpectRefused(writer, absl::StrCat("tensor ", kDown, " has the shape ["));
  }
}

TEST(FusedExperts, QuantizedOnesAreRefused) {
  SafetensorsWriter writer;
  writer.AddTensor(kGateUp, "F8_E4M3", {2, 6, 2}, Halves(0, 12));
  writer.AddTensor(kDown, "BF16", {2, 2, 3}, Halves(0, 12));
  ExpectRefused(writer, "is of type F8_E4M3, expected weights");
}

// As llm-compressor has written them, FP8 as transformers has it in memory, and
// as modules of GPTQ's would be named.
TEST(FusedExperts, WhatQuantizedOnesAreMadeOfIsRefusedByName) {
  for (const char* part :
       {"gate_up_proj_packed", "down_proj_scale", "gate_up_proj_scale_inv",
        "down_proj_blocks", "gate_up_proj.qweight", "down_proj.weight"}) {
    SCOPED_TRACE(part);
    const std::string name = absl::StrCat("model.layers.1.mlp.experts.", part);
    SafetensorsWriter writer = Fused();
    writer.AddTensor(name, "I32", {1, 1, 1}, "abcd");
    EXPECT_TRUE(HasFusedExperts(*SourceOf(writer)));
    SafetensorsWriter alone;
    alone.AddTensor(name, "I32", {1, 1, 1}, "abcd");
    EXPECT_TRUE(HasFusedExperts(*SourceOf(alone)));
    for (const SafetensorsWriter& written : {writer, alone}) {
      const auto source = FusedExperts::Create(SourceOf(written), Config());
      EXPECT_EQ(source.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(
          std::string(source.status().message()),
          HasSubstr(absl::StrCat(
              "/model.safetensors: tensor \"", name,
              "\" is not known: experts that are one tensor can not be "
              "quantized. Take a checkpoint that has the matrices of each "
              "expert apart")));
    }
  }
}

TEST(FusedExperts, OtherNamesAreNoneOfTheirs) {
  SafetensorsWriter writer;
  for (const char* name :
       {"model.layers.1.mlp.experts.0.down_proj.weight",
        "model.layers.1.mlp.experts.down_projection",
        "model.layers.1.xmlp.experts.down_proj", "mlp.experts.down_proj"}) {
    writer.AddTensor(name, "BF16", {1}, "ab");
  }
  EXPECT_FALSE(HasFusedExperts(*SourceOf(writer)));
}

TEST(FusedExperts, OneThatIsThereByItselfAsWellIsRefused) {
  SafetensorsWriter writer = Fused();
  writer.AddTensor("model.layers.1.mlp.experts.1.up_proj.weight", "BF16",
                   {3, 2}, Halves(0, 6));
  ExpectRefused(writer, absl::StrCat("experts.1.up_proj.weight is there, and "
                                     "a part of ",
                                     kGateUp, " as well."));
}

}  // namespace
}  // namespace lockstep
