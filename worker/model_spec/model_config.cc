#include "worker/model_spec/model_config.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include "worker/model_spec/config_limits.h"

namespace lockstep {
namespace {

using kernels::RopeStyle;

constexpr Architecture kArchitectures[] = {
    {"llama", "LlamaForCausalLM", /*qk_norm=*/false, RopeStyle::kNeighbours},
    {"qwen3", "Qwen3ForCausalLM", /*qk_norm=*/true, RopeStyle::kHalves},
};

}  // namespace

const Architecture* FindArchitecture(const std::string& name) {
  for (const Architecture& architecture : kArchitectures) {
    if (name == architecture.name || name == architecture.hugging_face_name) {
      return &architecture;
    }
  }
  return nullptr;
}

absl::Status UnsupportedArchitecture(const std::string& path,
                                     const std::string& found) {
  std::string supported;
  for (const Architecture& architecture : kArchitectures) {
    absl::StrAppend(&supported, supported.empty() ? "" : ", ",
                    architecture.name, " (", architecture.hugging_face_name,
                    ")");
  }
  return absl::UnimplementedError(absl::StrCat(
      path, " holds a model of the architecture \"",
      absl::CHexEscape(found.substr(0, 100)),
      "\", which is not supported; supported are ", supported, "."));
}

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
  return absl::OkStatus();
}

}  // namespace lockstep
