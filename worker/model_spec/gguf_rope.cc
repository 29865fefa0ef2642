#include "worker/model_spec/gguf_rope.h"

#include <absl/strings/string_view.h>

#include "common/status_macros.h"
#include "worker/model_spec/config_limits.h"
#include "worker/model_spec/gguf_keys.h"
#include "worker/model_spec/gguf_rope_factors.h"

namespace lockstep {
namespace {

constexpr char kAttentionFactor[] = "rope.scaling.attn_factor";
constexpr char kFactor[] = "rope.scaling.factor";
constexpr char kOriginal[] = "rope.scaling.original_context_length";
constexpr char kType[] = "rope.scaling.type";

absl::StatusOr<absl::string_view> ReadType(const GgufReader& reader) {
  if (reader.Has(kType)) return reader.file().GetString(reader.Key(kType));
  return HasLongRopeFactors(reader.file()) ? "longrope" : "none";
}

absl::Status ReadLongRope(const GgufReader& reader, ModelConfig* config) {
  RopeConfig& rope = config->rope;
  rope.scaling = RopeConfig::Scaling::kLongRope;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const int original,
      reader.IntOr(kOriginal, 2, kMaxContext, config->max_context));
  rope.original_max_position = original;
  const float growth = static_cast<float>(config->max_context) / original;
  LOCKSTEP_ASSIGN_OR_RETURN(
      rope.attention_factor,
      reader.FloatOr(kAttentionFactor, 0, kMaxRopeFactor,
                     LongRopeAttentionFactor(growth, original)));
  return ReadLongRopeFactors(reader.file(), &rope);
}

// As it is, or Llama 3's, which the factors of a tensor tell.
absl::Status ReadUnscaled(const GgufReader& reader, RopeConfig* rope) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const int original,
      reader.IntOr(kOriginal, 1, kMaxContext, kLlama3OriginalContext));
  if (rope->factor != 1) {
    return reader.Unsupported(kFactor,
                              "only 1 is where rope.scaling.type is none");
  }
  return ReadRopeFactors(reader.file(), original, rope);
}

// What llama.cpp's converter writes of yarn's other numbers. It has
// `attention_factor` as a key that llama.cpp multiplies by, where Hugging Face
// takes it as it is: that one is not known.
absl::Status ReadYarn(const GgufReader& reader, ModelConfig* config) {
  RopeConfig& rope = config->rope;
  rope.scaling = RopeConfig::Scaling::kYarn;
  rope.attention_factor = YarnAttentionFactor(rope.factor);
  LOCKSTEP_ASSIGN_OR_RETURN(rope.beta_fast,
                            reader.FloatOr(gguf_keys::kYarnBetaFast, 0,
                                           kMaxRopeFactor, rope.beta_fast));
  LOCKSTEP_ASSIGN_OR_RETURN(rope.beta_slow,
                            reader.FloatOr(gguf_keys::kYarnBetaSlow, 0,
                                           kMaxRopeFactor, rope.beta_slow));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const float ext_factor,
      reader.FloatOr(gguf_keys::kYarnExtFactor, 0, kMaxRopeFactor, 1));
  if (ext_factor != 1) {
    return reader.Unsupported(gguf_keys::kYarnExtFactor, "only 1 is");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      rope.original_max_position,
      reader.IntOr(kOriginal, 1, kMaxContext, config->max_context));
  return absl::OkStatus();
}

absl::Status RefuseYarnKeys(const GgufReader& reader) {
  for (const char* key : {gguf_keys::kYarnBetaFast, gguf_keys::kYarnBetaSlow,
                          gguf_keys::kYarnExtFactor}) {
    if (reader.Has(key)) {
      return reader.Unsupported(key, "it is where rope.scaling.type is yarn");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadScaling(const GgufReader& reader, ModelConfig* config) {
  RopeConfig& rope = config->rope;
  LOCKSTEP_ASSIGN_OR_RETURN(const absl::string_view type, ReadType(reader));
  if (type != "yarn") {
    LOCKSTEP_RETURN_IF_ERROR(RefuseYarnKeys(reader));
  }
  if (type == "longrope") return ReadLongRope(reader, config);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const float attention_factor,
      reader.FloatOr(kAttentionFactor, 0, kMaxRopeFactor, 1));
  if (attention_factor != 1) {
    return reader.Unsupported(kAttentionFactor, "only 1 is");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      rope.factor, reader.FloatOr(kFactor, 0, kMaxRopeFactor, rope.factor));
  if (type == "none") return ReadUnscaled(reader, &rope);
  if (type == "yarn") return ReadYarn(reader, config);
  if (type != "linear") {
    return reader.Unsupported(kType,
                              "only none, linear, longrope and yarn are");
  }
  rope.scaling = RopeConfig::Scaling::kLinear;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadGgufRope(const GgufReader& reader,
                          const Architecture& architecture,
                          ModelConfig* config) {
  config->rope.style = architecture.gguf_rope_style;
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->rope.theta,
      reader.FloatOr("rope.freq_base", 1, kMaxRopeTheta, config->rope.theta));
  config->local_rope = config->rope;
  LOCKSTEP_ASSIGN_OR_RETURN(config->local_rope.theta,
                            reader.FloatOr(gguf_keys::kLocalTheta, 1,
                                           kMaxRopeTheta, RopeConfig().theta));
  return ReadScaling(reader, config);
}

}  // namespace lockstep
