#include "worker/model_spec/huggingface_config.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/status_macros.h"
#include "worker/model_spec/architecture.h"
#include "worker/model_spec/config_limits.h"
#include "worker/model_spec/huggingface_experts.h"
#include "worker/model_spec/huggingface_layers.h"
#include "worker/model_spec/huggingface_rope.h"
#include "worker/model_spec/json_fields.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr char kAttentionMultiplier[] = "attention_multiplier";

struct NamedArchitecture {
  const Architecture* architecture;
  bool multimodal;
};

absl::StatusOr<NamedArchitecture> ReadArchitecture(const JsonFields& fields) {
  const json* names = fields.Find("architectures");
  if (names == nullptr || !names->is_array() || names->size() != 1 ||
      !(*names)[0].is_string()) {
    return fields.Unexpected("architectures", "a list of one name");
  }
  const std::string name = (*names)[0].get<std::string>();
  NamedArchitecture named;
  named.architecture = FindHuggingFaceArchitecture(name, &named.multimodal);
  if (named.architecture == nullptr) {
    return UnsupportedArchitecture(fields.path(), name);
  }
  return named;
}

// Options that change what the model computes and that the decoder lacks, or
// another architecture has. Each may be there with the value that switches it
// off.
absl::Status RefuseOptions(const JsonFields& fields,
                           const Architecture& architecture) {
  for (const char* name :
       {"attention_bias", "mlp_bias", "use_bidirectional_attention",
        "is_encoder_decoder", "add_cross_attention"}) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool on, fields.BoolOr(name, false));
    if (on && !architecture.Takes(name)) {
      return fields.Unsupported(name, "only false is");
    }
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const bool is_causal,
                            fields.BoolOr("is_causal", true));
  if (!is_causal) return fields.Unsupported("is_causal", "only true is");
  for (const char* name : {"attn_logit_softcapping", "final_logit_softcapping",
                           "query_pre_attn_scalar", "num_experts",
                           "num_local_experts", "clip_qkv", "adapter_config"}) {
    if (fields.Find(name) != nullptr && !architecture.Takes(name)) {
      return fields.Unsupported(name, "only models without it are");
    }
  }
  for (const char* name : {"n_routed_experts", "n_shared_experts",
                           "routed_scaling_factor", "scoring_func"}) {
    if (fields.Find(name) != nullptr && !architecture.sigmoid_router) {
      return fields.Unsupported(name, "only models without it are");
    }
  }
  for (const char* name :
       {"partial_rotary_factor", "embedding_multiplier", "logits_scaling",
        "residual_multiplier", kAttentionMultiplier}) {
    const json* value = fields.Find(name);
    if (value != nullptr && *value != 1 && !architecture.Takes(name)) {
      return fields.Unsupported(name, "only 1 is");
    }
  }
  const bool silu = architecture.gate == kernels::Gate::kSilu;
  const std::string expected = silu ? "silu" : "gelu_pytorch_tanh";
  for (const char* name : {"hidden_act", "hidden_activation"}) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string activation,
                              fields.StringOr(name, expected));
    if (activation != expected) {
      return fields.Unsupported(name, absl::StrCat("only ", expected, " is"));
    }
  }
  return absl::OkStatus();
}

// What q·k is multiplied by.
absl::StatusOr<float> ReadQueryScale(const JsonFields& fields,
                                     const Architecture& architecture,
                                     int head_dim) {
  if (architecture.Takes(kAttentionMultiplier)) {
    return fields.Float(kAttentionMultiplier, 0, kMaxScale);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const float size,
      fields.FloatOr("query_pre_attn_scalar", 0, kMaxHiddenSize, head_dim));
  return 1 / std::sqrt(size);
}

absl::Status ReadScales(const JsonFields& fields,
                        const Architecture& architecture, ModelConfig* config) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->query_scale,
      ReadQueryScale(fields, architecture, config->head_dim));
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->score_cap,
      fields.FloatOr("attn_logit_softcapping", 0, kMaxScale, 0));
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->logit_cap,
      fields.FloatOr("final_logit_softcapping", 0, kMaxScale, 0));
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->embedding_scale,
      fields.FloatOr("embedding_multiplier", 0, kMaxScale,
                     architecture.scaled_embedding
                         ? std::sqrt(static_cast<float>(config->hidden_size))
                         : 1));
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->residual_scale,
      fields.FloatOr("residual_multiplier", 0, kMaxScale, 1));
  LOCKSTEP_ASSIGN_OR_RETURN(config->logit_divisor,
                            fields.FloatOr("logits_scaling", 0, kMaxScale, 1));
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
  auto& known = config->eos_token_ids;
  std::set<uint32_t> seen(known.begin(), known.end());
  for (const json& id : ids->is_array() ? *ids : json::array({*ids})) {
    // A number above int64's range is negative here, and refused all the same.
    const int64_t value = id.is_number_integer() ? id.get<int64_t>() : -1;
    if (value < 0 || value >= config->vocab_size) {
      return fields.Unexpected("eos_token_id",
                               absl::StrCat("an id below ", config->vocab_size,
                                            " or a list of them"));
    }
    if (seen.insert(static_cast<uint32_t>(value)).second) {
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

// Yarn makes of the positions that a model was trained with more than
// config.json may say that it has: transformers and vLLM take the product.
void StretchContext(ModelConfig* config) {
  const RopeConfig& rope = config->rope;
  if (rope.scaling != RopeConfig::Scaling::kYarn) return;
  const double stretched = double{rope.factor} * rope.original_max_position;
  config->max_context = static_cast<int>(
      std::clamp<double>(stretched, config->max_context, double{kMaxContext}));
}

absl::StatusOr<ModelConfig> ConfigFromFields(const JsonFields& fields,
                                             const Architecture& architecture) {
  LOCKSTEP_RETURN_IF_ERROR(RefuseOptions(fields, architecture));
  ModelConfig config = ConfigOf(architecture);
  config.norm_offset = architecture.hugging_face_norm_offset;
  LOCKSTEP_RETURN_IF_ERROR(ReadSizes(fields, &config));
  LOCKSTEP_RETURN_IF_ERROR(
      ReadHuggingFaceLayers(fields, architecture, &config));
  LOCKSTEP_ASSIGN_OR_RETURN(config.norm_eps,
                            fields.Float("rms_norm_eps", 0, kMaxNormEps));
  LOCKSTEP_ASSIGN_OR_RETURN(config.tied_embeddings,
                            fields.BoolOr("tie_word_embeddings", false));
  if (architecture.qkv_bias_key != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        config.qkv_bias,
        fields.BoolOr(architecture.qkv_bias_key, architecture.qkv_bias));
  }
  if (architecture.qk_norm_key != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        config.qk_norm,
        fields.BoolOr(architecture.qk_norm_key, architecture.qk_norm));
  }
  if (architecture.has_experts) {
    LOCKSTEP_RETURN_IF_ERROR(
        ReadHuggingFaceExperts(fields, architecture, &config));
  }
  LOCKSTEP_RETURN_IF_ERROR(ReadScales(fields, architecture, &config));
  LOCKSTEP_RETURN_IF_ERROR(ReadHuggingFaceRope(fields, architecture, &config));
  StretchContext(&config);
  LOCKSTEP_RETURN_IF_ERROR(ReadTokenIds(fields, &config));
  LOCKSTEP_RETURN_IF_ERROR(CheckConfig(config, fields.path()));
  return config;
}

// The language part of a model with vision, with what is said of the whole.
absl::StatusOr<json> TextConfig(const JsonFields& fields,
                                const Architecture& architecture) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto text, fields.Object("text_config"));
  if (!text.has_value()) return fields.Unexpected("text_config", "an object");
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::string type,
      text->StringOr("model_type", architecture.text_model_type));
  if (type != architecture.text_model_type) {
    return text->Unsupported(
        "model_type",
        absl::StrCat("only ", architecture.text_model_type, " is"));
  }
  json merged = *fields.Find("text_config");
  for (const char* name :
       {"bos_token_id", "eos_token_id", "tie_word_embeddings"}) {
    const json* of_whole = fields.Find(name);
    if (of_whole != nullptr && text->Find(name) == nullptr) {
      merged[name] = *of_whole;
    }
  }
  return merged;
}

}  // namespace

absl::StatusOr<ModelConfig> ConfigFromHuggingFace(const json& json_config,
                                                  const std::string& path) {
  const JsonFields fields(json_config, path);
  LOCKSTEP_ASSIGN_OR_RETURN(const NamedArchitecture named,
                            ReadArchitecture(fields));
  const Architecture& architecture = *named.architecture;
  json merged = json::parse(architecture.defaults);
  if (!named.multimodal) {
    merged.update(json_config);
    return ConfigFromFields(JsonFields(merged, path), architecture);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const json text, TextConfig(fields, architecture));
  merged.update(text);
  LOCKSTEP_ASSIGN_OR_RETURN(
      ModelConfig config,
      ConfigFromFields(JsonFields(merged, path + ", in \"text_config\""),
                       architecture));
  config.multimodal = true;
  return config;
}

absl::Status MergeGenerationConfig(const json& generation_config,
                                   const std::string& path,
                                   ModelConfig* config) {
  return AddEosTokenIds(JsonFields(generation_config, path), config);
}

}  // namespace lockstep
