#include "worker/model_spec/huggingface_config.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>

#include "common/status_macros.h"
#include "worker/model_spec/config_limits.h"
#include "worker/model_spec/json_fields.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr absl::string_view kPartialRope = "partial_rotary_factor";

absl::Status Unsupported(const JsonFields& fields, absl::string_view name,
                         absl::string_view supported) {
  return absl::UnimplementedError(absl::StrCat(
      fields.path(), ": \"", name, "\" is ", JsonExcerpt(*fields.Find(name)),
      ", which is not supported; ", supported, "."));
}

absl::StatusOr<const Architecture*> ReadArchitecture(const JsonFields& fields) {
  const json* names = fields.Find("architectures");
  if (names == nullptr || !names->is_array() || names->size() != 1 ||
      !(*names)[0].is_string()) {
    return fields.Unexpected("architectures", "a list of one name");
  }
  const std::string name = (*names)[0].get<std::string>();
  const Architecture* architecture = FindArchitecture(name);
  if (architecture == nullptr || name != architecture->hugging_face_name) {
    return UnsupportedArchitecture(fields.path(), name);
  }
  return architecture;
}

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

// Options that change what the model computes and that the decoder lacks. Each
// may be there with the value that switches it off.
absl::Status RefuseOptions(const JsonFields& fields,
                           const Architecture& architecture) {
  for (const char* name :
       {"attention_bias", "mlp_bias", "use_bidirectional_attention",
        "is_encoder_decoder", "add_cross_attention"}) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool on, fields.BoolOr(name, false));
    if (on) return Unsupported(fields, name, "only false is");
  }
  for (const char* name : {"quantization_config", "attn_logit_softcapping",
                           "final_logit_softcapping", "num_experts",
                           "num_local_experts", "clip_qkv", "adapter_config"}) {
    if (fields.Find(name) != nullptr) {
      return Unsupported(fields, name, "only models without it are");
    }
  }
  for (const char* name :
       {"partial_rotary_factor", "embedding_multiplier", "logits_scaling",
        "residual_multiplier", "attention_multiplier"}) {
    if (architecture.partial_rope && name == kPartialRope) continue;
    const json* value = fields.Find(name);
    if (value != nullptr && *value != 1) {
      return Unsupported(fields, name, "only 1 is");
    }
  }
  for (const char* name : {"hidden_act", "hidden_activation"}) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string activation,
                              fields.StringOr(name, "silu"));
    if (activation != "silu") return Unsupported(fields, name, "only silu is");
  }
  return absl::OkStatus();
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
    return Unsupported(fields, "sliding_window",
                       "only full attention (null) is");
  }
  return window;
}

// Whether a layer sees the window: as layer_types says, else as all layers do,
// or those from max_window_layers on.
absl::StatusOr<bool> SeesWindow(const JsonFields& fields,
                                const Architecture& architecture, int layer,
                                int first) {
  const json* types = fields.Find("layer_types");
  if (types == nullptr) return layer >= first;
  const json& type = (*types)[layer];
  if (type == "full_attention") return false;
  if (architecture.windows == Architecture::Windows::kNever) {
    return Unsupported(fields, "layer_types", "only full_attention is");
  }
  if (type != "sliding_attention") {
    return Unsupported(fields, "layer_types",
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
  LOCKSTEP_ASSIGN_OR_RETURN(
      const int first, fields.IntOr("max_window_layers", 0, kMaxLayers, 0));
  for (int i = 0; i < config->num_layers; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool sees,
                              SeesWindow(fields, architecture, i, first));
    config->attention[i].window = sees ? window : 0;
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
    config->attention[i].has_rope =
        list == nullptr ? HasRope(i, interval) : (*list)[i] == 1;
  }
  return absl::OkStatus();
}

absl::Status ReadLayers(const JsonFields& fields,
                        const Architecture& architecture, ModelConfig* config) {
  config->attention.resize(config->num_layers);
  LOCKSTEP_RETURN_IF_ERROR(ReadWindows(fields, architecture, config));
  return architecture.has_no_rope_layers ? ReadNoRopeLayers(fields, config)
                                         : absl::OkStatus();
}

absl::Status ReadLlama3Scaling(const JsonFields& fields, RopeConfig* rope) {
  rope->scaling = RopeConfig::Scaling::kLlama3;
  LOCKSTEP_ASSIGN_OR_RETURN(rope->factor,
                            fields.Float("factor", 0, kMaxRopeFactor));
  LOCKSTEP_ASSIGN_OR_RETURN(rope->low_freq_factor,
                            fields.Float("low_freq_factor", 0, kMaxRopeFactor));
  LOCKSTEP_ASSIGN_OR_RETURN(
      rope->high_freq_factor,
      fields.Float("high_freq_factor", 0, kMaxRopeFactor));
  LOCKSTEP_ASSIGN_OR_RETURN(
      rope->original_max_position,
      fields.Int("original_max_position_embeddings", 1, kMaxContext));
  if (rope->high_freq_factor <= rope->low_freq_factor) {
    return fields.Unexpected(
        "high_freq_factor",
        absl::StrCat("more than low_freq_factor, ", rope->low_freq_factor));
  }
  return absl::OkStatus();
}

absl::Status ReadFactor(const JsonFields& fields, RopeConfig* rope) {
  LOCKSTEP_ASSIGN_OR_RETURN(rope->factor,
                            fields.Float("factor", 0, kMaxRopeFactor));
  return absl::OkStatus();
}

// Hugging Face's _compute_yarn_parameters; `mscale` is DeepSeek's.
absl::Status ReadYarnScaling(const JsonFields& fields, int max_context,
                             RopeConfig* rope) {
  rope->scaling = RopeConfig::Scaling::kYarn;
  for (const char* name : {"mscale", "mscale_all_dim"}) {
    if (fields.Find(name) != nullptr) {
      return Unsupported(fields, name, "only models without it are");
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const bool truncate,
                            fields.BoolOr("truncate", true));
  if (!truncate) return Unsupported(fields, "truncate", "only true is");
  LOCKSTEP_RETURN_IF_ERROR(ReadFactor(fields, rope));
  LOCKSTEP_ASSIGN_OR_RETURN(
      rope->beta_fast,
      fields.FloatOr("beta_fast", 0, kMaxRopeFactor, rope->beta_fast));
  LOCKSTEP_ASSIGN_OR_RETURN(
      rope->beta_slow,
      fields.FloatOr("beta_slow", 0, kMaxRopeFactor, rope->beta_slow));
  LOCKSTEP_ASSIGN_OR_RETURN(
      rope->attention_factor,
      fields.FloatOr("attention_factor", 0, kMaxRopeFactor,
                     YarnAttentionFactor(rope->factor)));
  LOCKSTEP_ASSIGN_OR_RETURN(rope->original_max_position,
                            fields.IntOr("original_max_position_embeddings", 1,
                                         kMaxContext, max_context));
  return absl::OkStatus();
}

// How rope is scaled; `fields` is rope_scaling or rope_parameters.
absl::Status ReadScaling(const JsonFields& fields, int max_context,
                         RopeConfig* rope) {
  const bool old_name =
      fields.Find("rope_type") == nullptr && fields.Find("type") != nullptr;
  const char* const key = old_name ? "type" : "rope_type";
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string type, fields.StringOr(key, ""));
  if (type == "default") return absl::OkStatus();
  if (type == "llama3") return ReadLlama3Scaling(fields, rope);
  if (type == "yarn") return ReadYarnScaling(fields, max_context, rope);
  if (type == "linear") {
    rope->scaling = RopeConfig::Scaling::kLinear;
    return ReadFactor(fields, rope);
  }
  constexpr char kSupported[] = "default, linear, llama3 and yarn are";
  if (type.empty()) return fields.Unexpected(key, "a name");
  return Unsupported(fields, key, kSupported);
}

// The dimensions of a head that rotate. New files have the factor inside.
absl::StatusOr<int> ReadRotaryDim(const JsonFields& fields,
                                  const std::optional<JsonFields>& parameters,
                                  const Architecture& architecture,
                                  int head_dim) {
  const bool inside =
      parameters.has_value() && parameters->Find(kPartialRope) != nullptr;
  const JsonFields& holder = inside ? *parameters : fields;
  LOCKSTEP_ASSIGN_OR_RETURN(const float part,
                            holder.FloatOr(kPartialRope, 0, 1, 1));
  if (part != 1 && !architecture.partial_rope) {
    return Unsupported(holder, kPartialRope, "only 1 is");
  }
  return static_cast<int>(head_dim * part);
}

// Old style: rope_theta beside rope_scaling. New: both in rope_parameters.
absl::Status ReadRope(const JsonFields& fields,
                      const Architecture& architecture, ModelConfig* config) {
  RopeConfig& rope = config->rope;
  LOCKSTEP_ASSIGN_OR_RETURN(auto parameters, fields.Object("rope_parameters"));
  LOCKSTEP_ASSIGN_OR_RETURN(auto scaling, fields.Object("rope_scaling"));
  if (parameters.has_value() && scaling.has_value()) {
    return fields.Unexpected("rope_scaling", "none beside \"rope_parameters\"");
  }
  const bool theta_inside =
      parameters.has_value() && parameters->Find("rope_theta") != nullptr;
  const JsonFields& theta = theta_inside ? *parameters : fields;
  LOCKSTEP_ASSIGN_OR_RETURN(
      rope.theta, theta.FloatOr("rope_theta", 1, kMaxRopeTheta, 10000));
  const auto& how = parameters.has_value() ? parameters : scaling;
  LOCKSTEP_ASSIGN_OR_RETURN(
      rope.rotary_dim,
      ReadRotaryDim(fields, how, architecture, config->head_dim));
  return how.has_value() ? ReadScaling(*how, config->max_context, &rope)
                         : absl::OkStatus();
}

absl::Status ReadSizes(const JsonFields& fields, ModelConfig* config) {
  LOCKSTEP_ASSIGN_OR_RETURN(config->vocab_size,
                            fields.Int("vocab_size", 1, kMaxVocabSize));
  LOCKSTEP_ASSIGN_OR_RETURN(config->hidden_size,
                            fields.Int("hidden_size", 1, kMaxHiddenSize));
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->intermediate_size,
      fields.Int("intermediate_size", 1, kMaxIntermediateSize));
  LOCKSTEP_ASSIGN_OR_RETURN(config->num_layers,
                            fields.Int("num_hidden_layers", 1, kMaxLayers));
  LOCKSTEP_ASSIGN_OR_RETURN(config->num_heads,
                            fields.Int("num_attention_heads", 1, kMaxHeads));
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->num_kv_heads,
      fields.IntOr("num_key_value_heads", 1, kMaxHeads, config->num_heads));
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->max_context,
      fields.Int("max_position_embeddings", 1, kMaxContext));
  if (fields.Find("head_dim") == nullptr &&
      config->hidden_size % config->num_heads != 0) {
    return fields.Unexpected(
        "head_dim",
        absl::StrCat("a number, as ", config->hidden_size,
                     " is no multiple of ", config->num_heads, " heads"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->head_dim, fields.IntOr("head_dim", 1, kMaxHeadDim,
                                     config->hidden_size / config->num_heads));
  return absl::OkStatus();
}

// One id or a list of them; adds those that are new.
absl::Status AddEosTokenIds(const JsonFields& fields, ModelConfig* config) {
  const json* ids = fields.Find("eos_token_id");
  if (ids == nullptr) return absl::OkStatus();
  for (const json& id : ids->is_array() ? *ids : json::array({*ids})) {
    // A number above int64's range is negative here, and refused all the same.
    const int64_t value = id.is_number_integer() ? id.get<int64_t>() : -1;
    if (value < 0 || value >= config->vocab_size) {
      return fields.Unexpected("eos_token_id",
                               absl::StrCat("an id below ", config->vocab_size,
                                            " or a list of them"));
    }
    auto& known = config->eos_token_ids;
    if (std::find(known.begin(), known.end(), value) == known.end()) {
      known.push_back(static_cast<uint32_t>(value));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadTokenIds(const JsonFields& fields, ModelConfig* config) {
  if (fields.Find("bos_token_id") != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        config->bos_token_id,
        fields.Int("bos_token_id", 0, config->vocab_size - 1));
  }
  return AddEosTokenIds(fields, config);
}

}  // namespace

absl::StatusOr<ModelConfig> ConfigFromHuggingFace(const json& json_config,
                                                  const std::string& path) {
  const JsonFields fields(json_config, path);
  LOCKSTEP_ASSIGN_OR_RETURN(const Architecture* architecture,
                            ReadArchitecture(fields));
  LOCKSTEP_RETURN_IF_ERROR(RefuseOptions(fields, *architecture));
  ModelConfig config = ConfigOf(*architecture);
  LOCKSTEP_RETURN_IF_ERROR(ReadSizes(fields, &config));
  LOCKSTEP_RETURN_IF_ERROR(ReadLayers(fields, *architecture, &config));
  LOCKSTEP_ASSIGN_OR_RETURN(config.norm_eps,
                            fields.Float("rms_norm_eps", 0, kMaxNormEps));
  LOCKSTEP_ASSIGN_OR_RETURN(config.tied_embeddings,
                            fields.BoolOr("tie_word_embeddings", false));
  LOCKSTEP_RETURN_IF_ERROR(ReadRope(fields, *architecture, &config));
  LOCKSTEP_RETURN_IF_ERROR(ReadTokenIds(fields, &config));
  LOCKSTEP_RETURN_IF_ERROR(CheckConfig(config, path));
  return config;
}

absl::Status MergeGenerationConfig(const json& generation_config,
                                   const std::string& path,
                                   ModelConfig* config) {
  return AddEosTokenIds(JsonFields(generation_config, path), config);
}

}  // namespace lockstep
