#include "worker/model_spec/huggingface_rope.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/status_macros.h"
#include "worker/model_spec/config_limits.h"
#include "worker/model_spec/rope_length.h"

namespace lockstep {
namespace {

constexpr absl::string_view kPartialRope = "partial_rotary_factor";
constexpr char kTheta[] = "rope_theta";

absl::Status ReadFactor(const JsonFields& fields, RopeConfig* rope) {
  LOCKSTEP_ASSIGN_OR_RETURN(rope->factor,
                            fields.Float("factor", 0, kMaxRopeFactor));
  return absl::OkStatus();
}

absl::Status ReadLlama3Scaling(const JsonFields& fields, RopeConfig* rope) {
  rope->scaling = RopeConfig::Scaling::kLlama3;
  LOCKSTEP_RETURN_IF_ERROR(ReadFactor(fields, rope));
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

absl::Status Refuse(const JsonFields& fields,
                    std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (fields.Find(name) != nullptr) {
      return fields.Unsupported(name, "only models without it are");
    }
  }
  return absl::OkStatus();
}

// The context before it was extended. Where the model says it beside the
// scaling, that counts.
absl::StatusOr<int> ReadOriginalContext(const JsonFields& model,
                                        const JsonFields& fields,
                                        int max_context) {
  constexpr char kName[] = "original_max_position_embeddings";
  const JsonFields& holder = model.Find(kName) != nullptr ? model : fields;
  return holder.IntOr(kName, 2, kMaxContext, max_context);
}

// Hugging Face's _compute_yarn_parameters; `mscale` is DeepSeek's, the factors
// are of Phi-3's first files, which mean longrope.
absl::Status ReadYarnScaling(const JsonFields& model, const JsonFields& fields,
                             int max_context, RopeConfig* rope) {
  rope->scaling = RopeConfig::Scaling::kYarn;
  LOCKSTEP_RETURN_IF_ERROR(Refuse(
      fields, {"mscale", "mscale_all_dim", "short_factor", "long_factor"}));
  LOCKSTEP_ASSIGN_OR_RETURN(const bool truncate,
                            fields.BoolOr("truncate", true));
  if (!truncate) return fields.Unsupported("truncate", "only true is");
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
                            ReadOriginalContext(model, fields, max_context));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> ReadFactors(const JsonFields& fields,
                                               const char* name, size_t count) {
  const nlohmann::json* list = fields.Find(name);
  const auto is_factor = [](const nlohmann::json& value) {
    return value.is_number() && value.get<float>() > 0 &&
           value.get<float>() <= kMaxRopeFactor;
  };
  if (list != nullptr && list->is_array() && list->size() == count &&
      std::all_of(list->begin(), list->end(), is_factor)) {
    return list->get<std::vector<float>>();
  }
  return fields.Unexpected(
      name, absl::StrCat("a list of ", count, " numbers above 0 and up to ",
                         kMaxRopeFactor, ", one for each pair that rotates"));
}

// Hugging Face's _compute_longrope_parameters; `short_mscale` is Phi-3.5-MoE's.
absl::Status ReadLongRope(const JsonFields& model, const JsonFields& fields,
                          int max_context, RopeConfig* rope) {
  rope->scaling = RopeConfig::Scaling::kLongRope;
  LOCKSTEP_RETURN_IF_ERROR(Refuse(fields, {"short_mscale", "long_mscale"}));
  LOCKSTEP_ASSIGN_OR_RETURN(const int original,
                            ReadOriginalContext(model, fields, max_context));
  rope->original_max_position = original;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const float factor,
      fields.FloatOr("factor", 0, kMaxRopeFactor,
                     static_cast<float>(max_context) / original));
  LOCKSTEP_ASSIGN_OR_RETURN(
      rope->attention_factor,
      fields.FloatOr("attention_factor", 0, kMaxRopeFactor,
                     LongRopeAttentionFactor(factor, original)));
  const int pairs = rope->rotary_dim / 2;
  LOCKSTEP_ASSIGN_OR_RETURN(rope->factors,
                            ReadFactors(fields, "short_factor", pairs));
  LOCKSTEP_ASSIGN_OR_RETURN(rope->long_factors,
                            ReadFactors(fields, "long_factor", pairs));
  return absl::OkStatus();
}

// Hugging Face's _compute_dynamic_ntk_parameters; `alpha` is Hunyuan's. The
// context that config.json says is the one before it is extended.
absl::Status ReadDynamic(const JsonFields& fields, RopeConfig* rope,
                         ModelConfig* config) {
  rope->scaling = RopeConfig::Scaling::kDynamic;
  LOCKSTEP_RETURN_IF_ERROR(Refuse(fields, {"alpha"}));
  LOCKSTEP_RETURN_IF_ERROR(ReadFactor(fields, rope));
  const int original = config->max_context;
  rope->original_max_position = original;
  config->max_context = static_cast<int>(std::clamp<double>(
      double{rope->factor} * original, original, kMaxContext));
  return absl::OkStatus();
}

// Old files say "type".
const char* TypeKey(const JsonFields& fields) {
  const bool old =
      fields.Find("rope_type") == nullptr && fields.Find("type") != nullptr;
  return old ? "type" : "rope_type";
}

// How `rope`, one of `config`, is scaled; `fields` is rope_scaling or
// rope_parameters of `model`.
absl::Status ReadScaling(const JsonFields& model, const JsonFields& fields,
                         RopeConfig* rope, ModelConfig* config) {
  const char* const key = TypeKey(fields);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string type, fields.StringOr(key, ""));
  if (type == "default") return absl::OkStatus();
  if (type == "llama3") return ReadLlama3Scaling(fields, rope);
  if (type == "yarn") {
    return ReadYarnScaling(model, fields, config->max_context, rope);
  }
  if (type == "longrope" || type == "su") {
    return ReadLongRope(model, fields, config->max_context, rope);
  }
  if (type == "dynamic") return ReadDynamic(fields, rope, config);
  if (type == "linear") {
    rope->scaling = RopeConfig::Scaling::kLinear;
    return ReadFactor(fields, rope);
  }
  if (type.empty()) return fields.Unexpected(key, "a name");
  return fields.Unsupported(
      key, "default, dynamic, linear, llama3, longrope and yarn are");
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
  if (part != 1 && !architecture.Takes(kPartialRope)) {
    return holder.Unsupported(kPartialRope, "only 1 is");
  }
  return static_cast<int>(head_dim * part);
}

absl::Status ReadTheta(const JsonFields& fields, const char* name,
                       RopeConfig* rope) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      rope->theta, fields.FloatOr(name, 1, kMaxRopeTheta, rope->theta));
  return absl::OkStatus();
}

// A set of parameters for the layers that see all, another for those that see a
// window.
absl::Status ReadRopeOfEachKind(const JsonFields& model,
                                const JsonFields& parameters,
                                ModelConfig* config) {
  for (const auto& [kind, rope] :
       {std::pair{"full_attention", &config->rope},
        std::pair{"sliding_attention", &config->local_rope}}) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto of_kind, parameters.Object(kind));
    if (!of_kind.has_value()) return parameters.Unexpected(kind, "an object");
    LOCKSTEP_RETURN_IF_ERROR(ReadTheta(*of_kind, kTheta, rope));
    LOCKSTEP_RETURN_IF_ERROR(ReadScaling(model, *of_kind, rope, config));
    if (FollowsLength(*rope)) {
      return of_kind->Unsupported(
          TypeKey(*of_kind),
          "for a kind of layers default, linear, llama3 and yarn are");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadHuggingFaceRope(const JsonFields& fields,
                                 const Architecture& architecture,
                                 ModelConfig* config) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto parameters, fields.Object("rope_parameters"));
  LOCKSTEP_ASSIGN_OR_RETURN(auto scaling, fields.Object("rope_scaling"));
  if (parameters.has_value() && scaling.has_value()) {
    return fields.Unexpected("rope_scaling", "none beside \"rope_parameters\"");
  }
  const auto& how = parameters.has_value() ? parameters : scaling;
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->rope.rotary_dim,
      ReadRotaryDim(fields, how, architecture, config->head_dim));
  config->rope.style = architecture.hugging_face_rope_style;
  config->local_rope = config->rope;
  if (architecture.local_rope && parameters.has_value()) {
    return ReadRopeOfEachKind(fields, *parameters, config);
  }
  const bool theta_inside =
      parameters.has_value() && parameters->Find(kTheta) != nullptr;
  LOCKSTEP_RETURN_IF_ERROR(
      ReadTheta(theta_inside ? *parameters : fields, kTheta, &config->rope));
  if (how.has_value()) {
    LOCKSTEP_RETURN_IF_ERROR(ReadScaling(fields, *how, &config->rope, config));
  }
  return ReadTheta(fields, "rope_local_base_freq", &config->local_rope);
}

}  // namespace lockstep
