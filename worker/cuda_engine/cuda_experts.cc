#include "worker/cuda_engine/cuda_experts.h"

#include <type_traits>

#include "common/status_macros.h"
#include "kernels/cuda/activation.h"
#include "kernels/cuda/experts/expert_choice.h"
#include "kernels/cuda/experts/expert_rows.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/product_args.h"
#include "worker/cuda_engine/device_product.h"

namespace lockstep {
namespace {

kernels::ExpertRule RuleOf(const ExpertsConfig& config) {
  return {.count = config.experts_per_token,
          .sigmoid = config.sigmoid,
          .renormalize = config.renormalize,
          .scale = config.weight_scale,
          .groups = config.num_groups,
          .groups_chosen = config.groups_per_token};
}

}  // namespace

template <typename T>
CudaExperts<T>::CudaExperts(const ModelConfig* config, const Shard* shard,
                            const DeviceActivations<T>* activations,
                            CudaStream* stream)
    : config_(*config),
      shard_(*shard),
      activations_(*activations),
      stream_(stream),
      rule_(RuleOf(config->experts)) {}

template <typename T>
absl::Status CudaExperts<T>::Launch(const DeviceLayer& layer, int tokens) {
  // Small tiles waste less where an expert has few rows. Either has the same
  // bits.
  const int rows = tokens * rule_.count;
  const int tile_rows = rows < cuda::kMostTileRows * config_.experts.num_experts
                            ? cuda::kFewTileRows
                            : cuda::kMostTileRows;
  LOCKSTEP_RETURN_IF_ERROR(Route(layer, tokens));
  LOCKSTEP_RETURN_IF_ERROR(SortRows(tokens, tile_rows));
  LOCKSTEP_RETURN_IF_ERROR(MultiplyExperts(layer.experts, tokens, tile_rows));
  if (config_.experts.shared_intermediate_size > 0) {
    LOCKSTEP_RETURN_IF_ERROR(MultiplyShared(layer.experts, tokens));
  }
  return Sum(tokens);
}

// What decides is in fp32, since a rounding could choose another expert: of
// activations in bf16 it norms anew.
template <typename T>
absl::Status CudaExperts<T>::Route(const DeviceLayer& layer, int tokens) {
  const DeviceActivations<T>& a = activations_;
  const DeviceExperts& weights = layer.experts;
  const float* input = a.delta;
  if constexpr (std::is_same_v<T, float>) {
    input = a.normed;
  } else {
    LOCKSTEP_RETURN_IF_ERROR(Check(
        cuda::RmsNorm<float, float>({a.hidden, layer.mlp_norm, config_.norm_eps,
                                     a.delta, tokens, config_.hidden_size},
                                    stream_->handle()),
        "RmsNorm"));
  }
  LOCKSTEP_RETURN_IF_ERROR(LaunchProduct(weights.router, input, tokens,
                                         a.experts.logits, weights.router.rows,
                                         stream_));
  if (config_.experts.shared_gate) {
    LOCKSTEP_RETURN_IF_ERROR(LaunchProduct(weights.shared_gate, input, tokens,
                                           a.experts.shared_gate,
                                           /*y_stride=*/1, stream_));
  }
  return Check(cuda::ChooseExperts({.logits = a.experts.logits,
                                    .tokens = tokens,
                                    .num_experts = config_.experts.num_experts,
                                    .rule = rule_,
                                    .bias = weights.choice_bias,
                                    .experts = a.experts.experts,
                                    .weights = a.experts.weights},
                                   stream_->handle()),
               "ChooseExperts");
}

template <typename T>
absl::Status CudaExperts<T>::SortRows(int tokens, int tile_rows) {
  const ExpertActivations& experts = activations_.experts;
  return Check(cuda::SortExpertRows(
                   {.experts = experts.experts,
                    .tokens = tokens,
                    .per_token = rule_.count,
                    .begin = shard_.expert_begin,
                    .end = shard_.expert_end,
                    .row_of = experts.row_of,
                    .token_of = experts.token_of,
                    .first_rows = experts.first_rows,
                    .tiles = experts.tiles,
                    .num_tiles = cuda::MostExpertTiles(
                        tokens * rule_.count,
                        shard_.expert_end - shard_.expert_begin, tile_rows),
                    .tile_rows = tile_rows},
                   stream_->handle()),
               "SortExpertRows");
}

template <typename T>
absl::Status CudaExperts<T>::MultiplyExperts(const DeviceExperts& weights,
                                             int tokens, int tile_rows) {
  const DeviceActivations<T>& a = activations_;
  const int rows = tokens * rule_.count;
  cuda::ProductGroups groups = {
      .tiles = a.experts.tiles,
      .num_tiles = cuda::MostExpertTiles(
          rows, shard_.expert_end - shard_.expert_begin, tile_rows),
      .tile_rows = tile_rows,
      .x_rows = a.experts.token_of};
  LOCKSTEP_RETURN_IF_ERROR(
      LaunchProducts(weights.gate_up, groups, a.normed, a.gate_up, stream_));
  LOCKSTEP_RETURN_IF_ERROR(Gate(rows, shard_.expert.size()));
  groups.x_rows = nullptr;
  return LaunchProducts(weights.down, groups, a.activated, a.experts.outputs,
                        stream_);
}

template <typename T>
absl::Status CudaExperts<T>::MultiplyShared(const DeviceExperts& weights,
                                            int tokens) {
  const DeviceActivations<T>& a = activations_;
  LOCKSTEP_RETURN_IF_ERROR(LaunchProduct(weights.shared_gate_up, nullptr,
                                         a.normed, tokens, a.gate_up, stream_));
  LOCKSTEP_RETURN_IF_ERROR(Gate(tokens, shard_.shared_expert.size()));
  return LaunchProduct(weights.shared_down, nullptr, a.activated, tokens,
                       a.experts.shared, stream_);
}

template <typename T>
absl::Status CudaExperts<T>::Gate(int rows, int intermediate) {
  return Check(
      cuda::GatedMul<T>(config_.gate, activations_.gate_up, rows, intermediate,
                        activations_.activated, stream_->handle()),
      "GatedMul");
}

template <typename T>
absl::Status CudaExperts<T>::Sum(int tokens) {
  const ExpertActivations& experts = activations_.experts;
  return Check(cuda::SumExperts({.outputs = experts.outputs,
                                 .row_of = experts.row_of,
                                 .weights = experts.weights,
                                 .tokens = tokens,
                                 .per_token = rule_.count,
                                 .dim = config_.hidden_size,
                                 .shared = experts.shared,
                                 .shared_gate = config_.experts.shared_gate
                                                    ? experts.shared_gate
                                                    : nullptr,
                                 .y = activations_.delta},
                                stream_->handle()),
               "SumExperts");
}

template class CudaExperts<float>;
template class CudaExperts<cuda::BFloat16>;

}  // namespace lockstep
