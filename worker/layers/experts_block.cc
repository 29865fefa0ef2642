#include "worker/layers/experts_block.h"

#include <algorithm>

#include "common/status_macros.h"
#include "kernels/threads/thread_pool.h"
#include "worker/layers/block.h"
#include "worker/layers/mlp.h"

namespace lockstep {
namespace {

// Rows of inputs and of outputs for so many tokens.
size_t InputRows(const ExpertsConfig& config, int tokens) {
  return static_cast<size_t>(tokens) * config.experts_per_token;
}

size_t OutputRows(const ExpertsConfig& config, int tokens) {
  const bool shared = config.shared_intermediate_size > 0;
  return InputRows(config, tokens) + (shared ? tokens : 0);
}

kernels::ExpertRule RuleOf(const ExpertsConfig& config) {
  return {.count = config.experts_per_token,
          .sigmoid = config.sigmoid,
          .renormalize = config.renormalize,
          .scale = config.weight_scale,
          .groups = config.num_groups,
          .groups_chosen = config.groups_per_token};
}

constexpr int kRowsPerRange = 4;

}  // namespace

ExpertsBlock::ExpertsBlock(const RankContext& rank, int max_tokens)
    : rank_(rank),
      config_(rank.config->experts),
      rule_(RuleOf(config_)),
      hidden_size_(rank.config->hidden_size),
      routing_(config_.num_experts, config_.experts_per_token, max_tokens),
      logits_(static_cast<size_t>(max_tokens) * config_.num_experts),
      shared_gate_(OutputRows(config_, max_tokens) -
                   InputRows(config_, max_tokens)),
      inputs_(InputRows(config_, max_tokens) * hidden_size_),
      outputs_(OutputRows(config_, max_tokens) * hidden_size_) {
  gate_up_.reserve(config_.num_experts);
  down_.reserve(config_.num_experts);
}

int64_t ExpertsBlock::Bytes(const ModelConfig& config, int max_tokens) {
  const ExpertsConfig& experts = config.experts;
  const size_t inputs = InputRows(experts, max_tokens);
  const size_t outputs = OutputRows(experts, max_tokens);
  // Routing has four numbers a row.
  const size_t floats = (inputs + outputs) * config.hidden_size + 4 * inputs +
                        outputs - inputs +
                        static_cast<size_t>(max_tokens) * experts.num_experts;
  return static_cast<int64_t>(floats * sizeof(float));
}

absl::Status ExpertsBlock::Forward(const LayerWeights& layer, int tokens,
                                   Activations* activations) {
  const ExpertsWeights& weights = layer.experts;
  const float* input = BlockInput(rank_, layer.mlp_norm, tokens, activations);
  Route(weights, input, tokens);
  MultiplyExperts(input, activations);
  ClearRowsOfOthers(tokens);
  if (config_.shared_intermediate_size > 0) {
    MultiplyShared(weights, input, tokens, activations);
  }
  LOCKSTEP_RETURN_IF_ERROR(rank_.collective->AllReduceSum(
      {outputs_.data(), OutputRows(config_, tokens) * hidden_size_}));
  Combine(tokens, activations->delta.data());
  AddToResidual(rank_, layer.mlp_post_norm, tokens, activations);
  return absl::OkStatus();
}

void ExpertsBlock::Route(const ExpertsWeights& weights, const float* input,
                         int tokens) {
  rank_.ops->Gemm(weights.router, input, hidden_size_, tokens, logits_.data(),
                  config_.num_experts);
  rank_.ops->ChooseExperts(
      logits_.data(), tokens, config_.num_experts, rule_,
      weights.choice_bias.empty() ? nullptr : weights.choice_bias.data(),
      routing_.experts(), routing_.weights());
  routing_.Group(tokens);
  gate_up_.clear();
  down_.clear();
  own_begin_ = own_end_ = 0;
  const int first_expert = rank_.shard->expert_begin;
  for (const auto& [expert, begin, end] : routing_.groups()) {
    if (expert < first_expert || expert >= rank_.shard->expert_end) continue;
    if (gate_up_.empty()) own_begin_ = begin;
    own_end_ = end;
    const MlpWeights& mlp = weights.experts[expert - first_expert];
    gate_up_.push_back({&mlp.gate_up, begin - own_begin_, end - own_begin_});
    down_.push_back({&mlp.down, begin - own_begin_, end - own_begin_});
  }
}

void ExpertsBlock::MultiplyExperts(const float* input,
                                   Activations* activations) {
  const int intermediate = rank_.shard->expert.size();
  const auto gather = [this, input](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t token = routing_.token_of()[own_begin_ + row];
      std::copy_n(input + token * hidden_size_, hidden_size_,
                  inputs_.data() + row * hidden_size_);
    }
  };
  rank_.ops->pool().For(own_end_ - own_begin_, kRowsPerRange, gather);
  rank_.ops->GroupedGatedGemm(gate_up_, rank_.config->gate, inputs_.data(),
                              hidden_size_, activations->gate_up.data(),
                              activations->activated.data(), intermediate);
  rank_.ops->GroupedGemm(down_, activations->activated.data(), intermediate,
                         outputs_.data() + int64_t{own_begin_} * hidden_size_,
                         hidden_size_);
}

void ExpertsBlock::ClearRowsOfOthers(int tokens) {
  const size_t rows = InputRows(config_, tokens);
  float* const out = outputs_.data();
  std::fill_n(out, static_cast<size_t>(own_begin_) * hidden_size_, 0.0f);
  std::fill_n(out + static_cast<size_t>(own_end_) * hidden_size_,
              (rows - own_end_) * hidden_size_, 0.0f);
}

void ExpertsBlock::MultiplyShared(const ExpertsWeights& weights,
                                  const float* input, int tokens,
                                  Activations* activations) {
  MultiplyMlp(rank_, weights.shared, rank_.shard->shared_expert.size(), input,
              tokens, activations,
              outputs_.data() + InputRows(config_, tokens) * hidden_size_);
  if (!config_.shared_gate) {
    std::fill_n(shared_gate_.data(), tokens, 1.0f);
    return;
  }
  rank_.ops->Gemm(weights.shared_gate, input, hidden_size_, tokens,
                  shared_gate_.data(), 1);
  rank_.ops->Sigmoid(shared_gate_.data(), tokens);
}

// out [tokens, hidden_size] = Σ weight·output over a token's experts.
void ExpertsBlock::Combine(int tokens, float* out) const {
  const int per_token = config_.experts_per_token;
  const bool shared = config_.shared_intermediate_size > 0;
  const auto add = [this](float weight, size_t row, float* sum) {
    const float* output = outputs_.data() + row * hidden_size_;
    for (int i = 0; i < hidden_size_; ++i) sum[i] += weight * output[i];
  };
  const auto combine = [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      float* sum = out + token * hidden_size_;
      std::fill_n(sum, hidden_size_, 0.0f);
      for (int64_t i = token * per_token; i < (token + 1) * per_token; ++i) {
        add(routing_.weights()[i], routing_.row_of()[i], sum);
      }
      if (shared) {
        add(shared_gate_.data()[token], InputRows(config_, tokens) + token,
            sum);
      }
    }
  };
  rank_.ops->pool().For(tokens, kRowsPerRange, combine);
}

}  // namespace lockstep
