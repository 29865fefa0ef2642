#include "worker/model_spec/model_config.h"

#include <absl/strings/str_cat.h>

#include <cmath>

#include "worker/model_spec/config_limits.h"

namespace lockstep {

float YarnAttentionFactor(float factor) {
  return factor <= 1 ? 1 : 0.1f * std::log(factor) + 1;
}

float LongRopeAttentionFactor(float factor, int original_max_position) {
  if (factor <= 1) return 1;
  return std::sqrt(1 + std::log(factor) /
                           std::log(static_cast<float>(original_max_position)));
}

namespace {

absl::Status CheckGroups(const ExpertsConfig& experts,
                         const std::string& path) {
  const int groups = experts.num_groups, chosen = experts.groups_per_token;
  if (groups == chosen && groups == 1) return absl::OkStatus();
  const auto error = [&](const auto&... what) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a token goes to ", experts.experts_per_token,
                     " experts in ", chosen, " of ", groups, " groups of ",
                     experts.num_experts, " experts, ", what..., "."));
  };
  if (chosen > groups) return error("more groups than there are");
  if (experts.num_experts % groups != 0) return error("which do not divide");
  const int size = experts.num_experts / groups;
  if (chosen < groups && size < 2) {
    return error("expected at least two in each");
  }
  if (experts.experts_per_token > chosen * size) {
    return error("which have fewer");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckConfig(const ModelConfig& config, const std::string& path) {
  const auto error = [&path](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", what...));
  };
  if (config.num_heads % config.num_kv_heads != 0) {
    return error(config.num_heads, " query heads are not a multiple of ",
                 config.num_kv_heads, " key-value heads.");
  }
  // It may have come from the other sizes.
  if (config.head_dim > kMaxHeadDim) {
    return error("the head size is ", config.head_dim, ", expected at most ",
                 kMaxHeadDim, ".");
  }
  if (config.head_dim % 2 != 0) {
    return error("the head size is ", config.head_dim,
                 ", expected an even number.");
  }
  const int rotary_dim = config.rope.rotary_dim;
  if (rotary_dim < 2 || rotary_dim > config.head_dim || rotary_dim % 2 != 0) {
    return error(rotary_dim, " dimensions of a head rotate, expected an even ",
                 "number from 2 to ", config.head_dim, ".");
  }
  const ExpertsConfig& experts = config.experts;
  if (experts.experts_per_token > experts.num_experts) {
    return error("a token goes to ", experts.experts_per_token, " of ",
                 experts.num_experts, " experts.");
  }
  return CheckGroups(experts, path);
}

}  // namespace lockstep
