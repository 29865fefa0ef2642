#include "worker/model_spec/huggingface_config.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "common/status_macros.h"
#include "worker/model_spec/config_limits.h"
#include "worker/model_spec/json_fields.h"

namespace lockstep {
namespace {

using nlohmann::json;

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

// Options that change what the model computes and that the decoder lacks. Each
// may be there with the value that switches it off.
absl::Status RefuseOptions(const JsonFields& fields) {
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

// A window that is configured but switched off is fine.
absl::Status RefuseSlidingWindow(const JsonFields& fields) {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool used,
                            fields.BoolOr("use_sliding_window", true));
  if (used && fields.Find("sliding_window") != nullptr) {
    return Unsupported(fields, "sliding_window",
                       "only full attention (null) is");
  }
  const json* layer_types = fields.Find("layer_types");
  if (layer_types == nullptr) return absl::OkStatus();
  if (!layer_types->is_array()) {
    return fields.Unexpected("layer_types", "a list");
  }
  for (const json& type : *layer_types) {
    if (type != "full_attention") {
      return Unsupported(fields, "layer_types", "only full_attention is");
    }
  }
  return absl::OkStatus();
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

// How rope is scaled; `fields` is rope_scaling or rope_parameters.
absl::Status ReadScaling(const JsonFields& fields, RopeConfig* rope) {
  const json* partial = fields.Find("partial_rotary_factor");
  if (partial != nullptr && *partial != 1) {
    return Unsupported(fields, "partial_rotary_factor", "only 1 is");
  }
  const bool old_name =
      fields.Find("rope_type") == nullptr && fields.Find("type") != nullptr;
  const char* const key = old_name ? "type" : "rope_type";
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string type, fields.StringOr(key, ""));
  if (type == "llama3") return ReadLlama3Scaling(fields, rope);
  if (type == "default") return absl::OkStatus();
  if (type.empty()) return fields.Unexpected(key, "default or llama3");
  return Unsupported(fields, key, "default and llama3 are");
}

// Old style: rope_theta beside rope_scaling. New: both in rope_parameters.
absl::Status ReadRope(const JsonFields& fields, RopeConfig* rope) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto parameters, fields.Object("rope_parameters"));
  LOCKSTEP_ASSIGN_OR_RETURN(auto scaling, fields.Object("rope_scaling"));
  if (parameters.has_value() && scaling.has_value()) {
    return fields.Unexpected("rope_scaling", "none beside \"rope_parameters\"");
  }
  const bool theta_inside =
      parameters.has_value() && parameters->Find("rope_theta") != nullptr;
  const JsonFields& theta = theta_inside ? *parameters : fields;
  LOCKSTEP_ASSIGN_OR_RETURN(
      rope->theta, theta.FloatOr("rope_theta", 1, kMaxRopeTheta, 10000));
  if (parameters.has_value()) return ReadScaling(*parameters, rope);
  if (scaling.has_value()) return ReadScaling(*scaling, rope);
  return absl::OkStatus();
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
  LOCKSTEP_RETURN_IF_ERROR(RefuseOptions(fields));
  LOCKSTEP_RETURN_IF_ERROR(RefuseSlidingWindow(fields));
  ModelConfig config;
  config.architecture = architecture->name;
  config.qk_norm = architecture->qk_norm;
  LOCKSTEP_RETURN_IF_ERROR(ReadSizes(fields, &config));
  LOCKSTEP_ASSIGN_OR_RETURN(config.norm_eps,
                            fields.Float("rms_norm_eps", 0, kMaxNormEps));
  LOCKSTEP_ASSIGN_OR_RETURN(config.tied_embeddings,
                            fields.BoolOr("tie_word_embeddings", false));
  LOCKSTEP_RETURN_IF_ERROR(ReadRope(fields, &config.rope));
  config.rope.rotary_dim = config.head_dim;
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
