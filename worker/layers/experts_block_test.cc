#include "worker/layers/experts_block.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/weights/arithmetic.h"
#include "kernels/weights/dtype.h"
#include "kernels/weights/packed_matrix.h"
#include "tests/testing/local_ranks.h"
#include "worker/layers/activations.h"
#include "worker/layers/rank_context.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"
#include "worker/weights/model_weights.h"

namespace lockstep {
namespace {

using kernels::Arithmetic;
using kernels::PackedMatrix;

constexpr int kTokens = 7;
constexpr int kHidden = 48;
constexpr int kIntermediate = 64;
constexpr int kExperts = 5;  // eight ranks: some hold none

ModelConfig BySoftmax() {
  ModelConfig config;
  config.hidden_size = kHidden;
  config.num_heads = 8;
  config.num_kv_heads = 8;
  config.head_dim = 8;
  config.vocab_size = 64;
  config.layers = {{.has_experts = true}};
  config.experts = {.num_experts = kExperts,
                    .experts_per_token = 2,
                    .intermediate_size = kIntermediate};
  return config;
}

// With a shared expert without a gate.
ModelConfig BySigmoids() {
  ModelConfig config = BySoftmax();
  config.experts.renormalize = true;
  config.experts.weight_scale = 2.5f;
  config.experts.sigmoid = config.experts.choice_bias = true;
  config.experts.shared_intermediate_size = kIntermediate;
  return config;
}

std::vector<float> Random(int count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

void AddRows(const std::vector<float>& rows, int cols, int begin, int count,
             PackedMatrix* matrix) {
  matrix->AddRows(kernels::DType::kF32, count, rows.data() + begin * cols,
                  cols * sizeof(float), /*col_begin=*/0);
}

MlpWeights Expert(int number, const MlpCut& cut, Arithmetic arithmetic) {
  MlpWeights mlp;
  mlp.gate_up = PackedMatrix(kHidden, kHidden, arithmetic);
  for (const int part : {0, 1}) {
    AddRows(Random(kIntermediate * kHidden, 10 * number + part), kHidden,
            cut.begin, cut.size(), &mlp.gate_up);
  }
  const std::vector<float> down =
      Random(kHidden * kIntermediate, 10 * number + 2);
  mlp.down = PackedMatrix(cut.size(), cut.slice_cols, arithmetic);
  mlp.down.AddRows(kernels::DType::kF32, kHidden, down.data(),
                   kIntermediate * sizeof(float), cut.begin);
  return mlp;
}

LayerWeights Weights(const ModelConfig& config, const Shard& shard,
                     Arithmetic arithmetic) {
  LayerWeights layer;
  if (config.experts.choice_bias) {
    layer.experts.choice_bias = Random(kExperts, 3);
  }
  if (config.experts.shared_intermediate_size > 0) {
    layer.experts.shared = Expert(kExperts, shard.shared_expert, arithmetic);
  }
  layer.experts.router = PackedMatrix(kHidden, kHidden);
  AddRows(Random(kExperts * kHidden, 1), kHidden, 0, kExperts,
          &layer.experts.router);
  for (int i = shard.expert_begin; i < shard.expert_end; ++i) {
    layer.experts.experts.push_back(Expert(i, shard.expert, arithmetic));
  }
  return layer;
}

// What the block makes of hidden, on the first rank; the others' is the same.
std::vector<float> OutputOn(const ModelConfig& config, int size,
                            bool expert_parallel, Arithmetic arithmetic) {
  auto ranks = testing::LocalRanks::Create(size);
  EXPECT_TRUE(ranks.ok()) << ranks.status();
  std::vector<std::vector<float>> outputs(size);
  const auto forward = [&](const testing::LocalRank& local) {
    const Shard shard =
        *MakeShard(config, {}, local.rank, size, expert_parallel);
    const LayerWeights layer = Weights(config, shard, arithmetic);
    const RankContext rank = {&config, &shard, local.ops, local.collective};
    local.ops->ReserveProducts(2 * kTokens, std::max(kHidden, kIntermediate));
    Activations activations(config, shard, kTokens);
    const std::vector<float> hidden = Random(kTokens * kHidden, 2);
    std::copy(hidden.begin(), hidden.end(), activations.hidden.data());
    ExpertsBlock block(rank, kTokens);
    const absl::Status status = block.Forward(layer, kTokens, &activations);
    outputs[local.rank].assign(activations.hidden.data(),
                               activations.hidden.data() + hidden.size());
    return status;
  };
  const absl::Status status = (*ranks)->Run(forward);
  EXPECT_TRUE(status.ok()) << status;
  for (const auto& output : outputs) EXPECT_EQ(output, outputs[0]);
  return outputs[0];
}

// One row through an expert, as the block computes it on one rank.
std::vector<double> ThroughExpert(int number, const float* x) {
  const auto gate = Random(kIntermediate * kHidden, 10 * number);
  const auto up = Random(kIntermediate * kHidden, 10 * number + 1);
  const auto down = Random(kHidden * kIntermediate, 10 * number + 2);
  std::vector<double> inner(kIntermediate), out(kHidden);
  for (int i = 0; i < kIntermediate; ++i) {
    double g = 0, u = 0;
    for (int j = 0; j < kHidden; ++j) {
      g += double{gate[i * kHidden + j]} * x[j];
      u += double{up[i * kHidden + j]} * x[j];
    }
    inner[i] = g / (1 + std::exp(-g)) * u;
  }
  for (int i = 0; i < kHidden; ++i) {
    for (int j = 0; j < kIntermediate; ++j) {
      out[i] += down[i * kIntermediate + j] * inner[j];
    }
  }
  return out;
}

// What a block by sigmoids adds to a token, from its definition.
std::vector<double> Added(const float* x) {
  const auto router = Random(kExperts * kHidden, 1);
  const auto bias = Random(kExperts, 3);
  std::vector<double> scores(kExperts);
  std::vector<int> order(kExperts);
  for (int i = 0; i < kExperts; ++i) {
    double logit = 0;
    for (int j = 0; j < kHidden; ++j) {
      logit += double{router[i * kHidden + j]} * x[j];
    }
    scores[i] = 1 / (1 + std::exp(-logit));
    order[i] = i;
  }
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return scores[a] + bias[a] > scores[b] + bias[b];
  });
  std::vector<double> sum = ThroughExpert(kExperts, x);  // the shared one
  const double total = scores[order[0]] + scores[order[1]];
  for (const int expert : {order[0], order[1]}) {
    const std::vector<double> output = ThroughExpert(expert, x);
    for (int i = 0; i < kHidden; ++i) {
      sum[i] += 2.5 * scores[expert] / total * output[i];
    }
  }
  return sum;
}

TEST(ExpertsBlock, AddsTheChosenBySigmoidsAndTheSharedOne) {
  const std::vector<float> hidden = Random(kTokens * kHidden, 2);
  const std::vector<float> output =
      OutputOn(BySigmoids(), 1, /*expert_parallel=*/false, Arithmetic::kStrict);
  for (int token = 0; token < kTokens; ++token) {
    const float* x = &hidden[token * kHidden];
    const std::vector<double> added = Added(x);
    for (int i = 0; i < kHidden; ++i) {
      // Sums of thousands, in fp32.
      EXPECT_NEAR(output[token * kHidden + i], x[i] + added[i],
                  1e-5 * (1000 + std::abs(added[i])));
    }
  }
}

TEST(ExpertsBlock, IsTheSameHoweverTheExpertsAreCut) {
  for (const ModelConfig& config : {BySoftmax(), BySigmoids()}) {
    for (const Arithmetic arithmetic :
         {Arithmetic::kStrict, Arithmetic::kFast}) {
      const auto expected =
          OutputOn(config, 1, /*expert_parallel=*/false, arithmetic);
      EXPECT_NE(expected, Random(kTokens * kHidden, 2));
      for (const int size : {1, 2, 3, 4, 8}) {
        SCOPED_TRACE(absl::StrCat(size, " ranks, ",
                                  kernels::ArithmeticName(arithmetic)));
        // Three ranks can not share eight slices of an expert, nor of the
        // shared one, which is always shared.
        const bool whole = config.experts.shared_intermediate_size == 0;
        if (size != 3 || whole) {
          EXPECT_EQ(
              OutputOn(config, size, /*expert_parallel=*/true, arithmetic),
              expected);
        }
        if (size == 3) continue;
        EXPECT_EQ(OutputOn(config, size, /*expert_parallel=*/false, arithmetic),
                  expected);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
