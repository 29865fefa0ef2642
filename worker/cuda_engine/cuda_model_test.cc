#include "worker/cuda_engine/cuda_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kernels/rotary.h"
#include "kernels/simd/gate.h"
#include "worker/model_spec/model_config.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

ModelConfig Dense() {
  ModelConfig config;
  config.architecture = "llama";
  config.num_layers = 2;
  config.layers.resize(2);
  config.num_heads = 6;
  config.num_kv_heads = 2;
  config.head_dim = 64;
  return config;
}

void ExpectRefused(const ModelConfig& config, const std::string& lacking) {
  const absl::Status status = CheckCudaModel(config);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr(lacking));
  EXPECT_THAT(std::string(status.message()), HasSubstr("llama"));
}

TEST(CudaModel, TakesDenseModels) {
  EXPECT_TRUE(CheckCudaModel(Dense()).ok());
  ModelConfig config = Dense();
  config.qk_norm = config.qkv_bias = config.fused_qkv = true;
  config.layers[0].window = 20;
  config.layers[1].has_rope = false;
  EXPECT_TRUE(CheckCudaModel(config).ok());
  // As GLM-4-9B's.
  config.rope.style = kernels::RopeStyle::kNeighbours;
  config.fused_gate_up = true;
  EXPECT_TRUE(CheckCudaModel(config).ok());
  // As Gemma's.
  config.gate = kernels::Gate::kGeluTanh;
  config.names.mlp_post_norm = "post_feedforward_layernorm";
  config.norm_offset = true;
  config.score_cap = 50;
  config.logit_cap = 30;
  config.layers[1].local_rope = true;
  EXPECT_TRUE(CheckCudaModel(config).ok());
  // As OLMo 2's and Granite's.
  config.names.attention_norm = "";
  config.projection_norm = true;
  config.embedding_scale = config.residual_scale = config.logit_divisor = 3;
  EXPECT_TRUE(CheckCudaModel(config).ok());
}

TEST(CudaModel, TakesMixturesOfExperts) {
  ModelConfig config = Dense();
  config.experts.num_experts = 4;
  config.experts.sigmoid = config.experts.choice_bias = true;
  config.layers[1].has_experts = true;  // the first layer is dense
  EXPECT_TRUE(CheckCudaModel(config).ok());
}

TEST(CudaModel, NamesWhatThereIsNoKernelFor) {
  ModelConfig config = Dense();
  config.head_dim = 512;
  ExpectRefused(config, "heads of more than 256");
}

TEST(CudaModel, NamesTheSizesThatShareItsHeadsEvenly) {
  for (int size : {1, 2, 6}) {
    EXPECT_TRUE(CheckCudaShards(Dense(), size).ok()) << size;
  }
  EXPECT_EQ(CheckCudaShards(Dense(), 3),
            absl::InvalidArgumentError(
                "--tensor_parallel_size is 3; GPUs share 6 query heads and 2 "
                "key-value heads evenly, so it must be one of 1, 2, 6."));
}

}  // namespace
}  // namespace lockstep
