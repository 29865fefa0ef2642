// The default model, read as a rank does at start-up.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/test_data.h"
#include "worker/model_spec/shard.h"
#include "worker/weights/model_files.h"
#include "worker/weights/model_weights.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

TEST(DefaultModel, IsReadAsPublished) {
  const auto path = testing::TestData("models/SmolLM2-135M-Instruct.Q4_1.gguf");
  ASSERT_TRUE(path.ok()) << path.status();
  const auto model = OpenModel(*path);
  ASSERT_TRUE(model.ok()) << model.status();
  const ModelConfig& config = model->config;
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.vocab_size, 49152);
  EXPECT_EQ(config.hidden_size, 576);
  EXPECT_EQ(config.intermediate_size, 1536);
  EXPECT_EQ(config.num_layers, 30);
  EXPECT_EQ(config.num_heads, 9);
  EXPECT_EQ(config.num_kv_heads, 3);
  EXPECT_EQ(config.head_dim, 64);
  EXPECT_EQ(config.max_context, 8192);
  EXPECT_EQ(config.norm_eps, 1e-5f);
  EXPECT_EQ(config.rope.theta, 100000);
  EXPECT_EQ(config.rope.style, kernels::RopeStyle::kNeighbours);
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(2));
  EXPECT_EQ(config.bos_token_id, 1);
  EXPECT_EQ(model->row_parallel_blocks, (RowParallelBlocks{32, 32}));
  EXPECT_THAT(model->weight_types, ElementsAre("Q4_1", "Q8_0", "F32"));

  for (const int size : {1, 2}) {
    const auto shard =
        MakeShard(config, model->row_parallel_blocks, size - 1, size);
    ASSERT_TRUE(shard.ok()) << shard.status();
    const auto weights = LoadWeights(*model->tensors, config, *shard);
    ASSERT_TRUE(weights.ok()) << weights.status();
    EXPECT_EQ(weights->layers.size(), 30);
    EXPECT_EQ(weights->layers[29].o.cols(), size == 1 ? 576 : 320);
    EXPECT_EQ(weights->head.rows(), 49152 / size);
  }
}

}  // namespace
}  // namespace lockstep
