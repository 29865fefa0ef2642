#include "worker/model_spec/huggingface_layers.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "common/status_macros.h"
#include "worker/model_spec/config_limits.h"

namespace lockstep {
namespace {

using nlohmann::json;

// Of one entry a layer, where it is there.
absl::Status CheckLayerList(const JsonFields& fields, absl::string_view name,
                            int num_layers) {
  const json* list = fields.Find(name);
  if (list == nullptr || (list->is_array() && list->size() == num_layers)) {
    return absl::OkStatus();
  }
  return fields.Unexpected(
      name, absl::StrCat("a list of ", num_layers, ", one for each layer"));
}

// Positions seen in the layers that see a window; 0 where none does.
absl::StatusOr<int> ReadWindow(const JsonFields& fields,
                               const Architecture& architecture) {
  using Windows = Architecture::Windows;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const bool used, fields.BoolOr("use_sliding_window",
                                     architecture.windows != Windows::kIfUsed));
  if (!used) return 0;
  LOCKSTEP_ASSIGN_OR_RETURN(const int window,
                            fields.IntOr("sliding_window", 1, kMaxContext, 0));
  if (window != 0 && architecture.windows == Windows::kNever) {
    return fields.Unsupported("sliding_window",
                              "only full attention (null) is");
  }
  return window;
}

// Which layers see the window where layer_types does not list them: those from
// `first` on, but for every `full_interval`-th, unless that is 0.
struct WindowRule {
  int first = 0;
  int full_interval = 0;

  bool Sees(int layer) const {
    const bool full = full_interval > 0 && (layer + 1) % full_interval == 0;
    return layer >= first && !full;
  }
};

absl::StatusOr<WindowRule> ReadWindowRule(const JsonFields& fields,
                                          const Architecture& architecture) {
  WindowRule rule;
  LOCKSTEP_ASSIGN_OR_RETURN(
      rule.first, fields.IntOr("max_window_layers", 0, kMaxLayers, 0));
  rule.full_interval = architecture.full_attention_interval;
  if (rule.full_interval > 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(rule.full_interval,
                              fields.IntOr("sliding_window_pattern", 1,
                                           kMaxLayers, rule.full_interval));
  }
  return rule;
}

// Whether a layer sees the window: as layer_types says, else by the rule.
absl::StatusOr<bool> SeesWindow(const JsonFields& fields,
                                const Architecture& architecture, int layer,
                                const WindowRule& rule) {
  const json* types = fields.Find("layer_types");
  if (types == nullptr) return rule.Sees(layer);
  const json& type = (*types)[layer];
  if (type == "full_attention") return false;
  if (architecture.windows == Architecture::Windows::kNever) {
    return fields.Unsupported("layer_types", "only full_attention is");
  }
  if (type != "sliding_attention") {
    return fields.Unsupported("layer_types",
                              "only full_attention and sliding_attention are");
  }
  if (fields.Find("sliding_window") == nullptr) {
    return fields.Unexpected("sliding_window", "a number, for layer_types");
  }
  return true;
}

absl::Status ReadWindows(const JsonFields& fields,
                         const Architecture& architecture,
                         ModelConfig* config) {
  LOCKSTEP_ASSIGN_OR_RETURN(const int window, ReadWindow(fields, architecture));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckLayerList(fields, "layer_types", config->num_layers));
  LOCKSTEP_ASSIGN_OR_RETURN(const WindowRule rule,
                            ReadWindowRule(fields, architecture));
  for (int i = 0; i < config->num_layers; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool sees,
                              SeesWindow(fields, architecture, i, rule));
    config->layers[i].window = sees ? window : 0;
    config->layers[i].local_rope = sees && architecture.local_rope;
  }
  return absl::OkStatus();
}

// The layers that rotate: a list of 1 and 0, or all but every n-th.
absl::Status ReadNoRopeLayers(const JsonFields& fields, ModelConfig* config) {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckLayerList(fields, "no_rope_layers", config->num_layers));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const int interval,
      fields.IntOr("no_rope_layer_interval", 1, kMaxLayers, kNoRopeInterval));
  const json* list = fields.Find("no_rope_layers");
  for (int i = 0; i < config->num_layers; ++i) {
    if (list != nullptr && (*list)[i] != 0 && (*list)[i] != 1) {
      return fields.Unexpected("no_rope_layers", "a list of 0 and 1");
    }
    config->layers[i].has_rope =
        list == nullptr ? HasRope(i, interval) : (*list)[i] == 1;
  }
  return absl::OkStatus();
}

// The layers with experts: every n-th but those listed and the first few.
absl::Status ReadExpertLayers(const JsonFields& fields,
                              const Architecture& architecture,
                              ModelConfig* config) {
  int first = 0;
  if (architecture.sigmoid_router) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        first, fields.IntOr("first_k_dense_replace", 0, kMaxLayers, 0));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const int step, fields.IntOr("decoder_sparse_step", 1, kMaxLayers, 1));
  const json* dense = fields.Find("mlp_only_layers");
  if (dense != nullptr && !dense->is_array()) {
    return fields.Unexpected("mlp_only_layers", "a list of layers");
  }
  for (int i = 0; i < config->num_layers; ++i) {
    config->layers[i].has_experts = i >= first && (i + 1) % step == 0;
  }
  if (dense == nullptr) return absl::OkStatus();
  for (const json& layer : *dense) {
    const int64_t i = layer.is_number_integer() ? layer.get<int64_t>() : -1;
    if (i >= 0 && i < config->num_layers) config->layers[i].has_experts = false;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadHuggingFaceLayers(const JsonFields& fields,
                                   const Architecture& architecture,
                                   ModelConfig* config) {
  config->layers.resize(config->num_layers);
  LOCKSTEP_RETURN_IF_ERROR(ReadWindows(fields, architecture, config));
  if (architecture.has_no_rope_layers) {
    LOCKSTEP_RETURN_IF_ERROR(ReadNoRopeLayers(fields, config));
  }
  return architecture.has_experts
             ? ReadExpertLayers(fields, architecture, config)
             : absl::OkStatus();
}

}  // namespace lockstep
