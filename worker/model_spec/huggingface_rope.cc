#include "worker/model_spec/huggingface_rope.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <optional>
#include <string>

#include "common/status_macros.h"
#include "worker/model_spec/config_limits.h"

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

// Hugging Face's _compute_yarn_parameters; `mscale` is DeepSeek's.
absl::Status ReadYarnScaling(const JsonFields& fields, int max_context,
                             RopeConfig* rope) {
  rope->scaling = RopeConfig::Scaling::kYarn;
  for (const char* name : {"mscale", "mscale_all_dim"}) {
    if (fields.Find(name) != nullptr) {
      return fields.Unsupported(name, "only models without it are");
    }
  }
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
  return fields.Unsupported(key, kSupported);
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

// Theta is in `theta`, scaling in `scaling`, which may be absent.
absl::Status ReadOneRope(const JsonFields& theta, const char* theta_name,
                         const std::optional<JsonFields>& scaling,
                         int max_context, RopeConfig* rope) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      rope->theta, theta.FloatOr(theta_name, 1, kMaxRopeTheta, rope->theta));
  return scaling.has_value() ? ReadScaling(*scaling, max_context, rope)
                             : absl::OkStatus();
}

// A set of parameters for the layers that see all, another for those that see a
// window.
absl::Status ReadRopeOfEachKind(const JsonFields& parameters,
                                ModelConfig* config) {
  for (const auto& [kind, rope] :
       {std::pair{"full_attention", &config->rope},
        std::pair{"sliding_attention", &config->local_rope}}) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto of_kind, parameters.Object(kind));
    if (!of_kind.has_value()) return parameters.Unexpected(kind, "an object");
    LOCKSTEP_RETURN_IF_ERROR(
        ReadOneRope(*of_kind, kTheta, of_kind, config->max_context, rope));
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
    return ReadRopeOfEachKind(*parameters, config);
  }
  const bool theta_inside =
      parameters.has_value() && parameters->Find(kTheta) != nullptr;
  LOCKSTEP_RETURN_IF_ERROR(ReadOneRope(theta_inside ? *parameters : fields,
                                       kTheta, how, config->max_context,
                                       &config->rope));
  return ReadOneRope(fields, "rope_local_base_freq", /*scaling=*/std::nullopt,
                     config->max_context, &config->local_rope);
}

}  // namespace lockstep
