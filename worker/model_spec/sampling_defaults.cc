#include "worker/model_spec/sampling_defaults.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/status_macros.h"
#include "worker/model_spec/json_fields.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr double kMostTemperature = 100;
constexpr double kMostPenalty = 100;

// GGUF's names of what generation_config.json has.
struct GgufKey {
  const char* key;
  const char* name;
};
constexpr GgufKey kGgufKeys[] = {
    {"general.sampling.temp", "temperature"},
    {"general.sampling.top_p", "top_p"},
    {"general.sampling.min_p", "min_p"},
    {"general.sampling.penalty_repeat", "repetition_penalty"},
};
constexpr char kGgufTopK[] = "general.sampling.top_k";

absl::Status ReadFloat(const JsonFields& fields, const char* name, double above,
                       double most, std::optional<float>* value) {
  if (fields.Find(name) == nullptr) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(*value, fields.Float(name, above, most));
  return absl::OkStatus();
}

absl::Status ReadInt(const JsonFields& fields, const char* name, int64_t least,
                     std::optional<int>* value) {
  if (fields.Find(name) == nullptr) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(
      *value, fields.Int(name, least, std::numeric_limits<int>::max()));
  return absl::OkStatus();
}

}  // namespace

std::string SamplingDefaults::ToString() const {
  std::vector<std::string> parts;
  const auto add = [&parts](const char* name, const auto& value) {
    if (value.has_value()) parts.push_back(absl::StrCat(name, "=", *value));
  };
  add("temperature", temperature);
  add("top_p", top_p);
  add("min_p", min_p);
  add("repetition_penalty", repetition_penalty);
  add("top_k", top_k);
  add("max_tokens", max_tokens);
  return absl::StrJoin(parts, " ");
}

absl::StatusOr<SamplingDefaults> SamplingFromGenerationConfig(
    const json& config, const std::string& path) {
  const JsonFields fields(config, path);
  const double from_zero = std::nextafter(0.0, -1.0);
  SamplingDefaults sampling;
  LOCKSTEP_RETURN_IF_ERROR(ReadFloat(fields, "temperature", from_zero,
                                     kMostTemperature, &sampling.temperature));
  LOCKSTEP_RETURN_IF_ERROR(ReadFloat(fields, "top_p", 0, 1, &sampling.top_p));
  LOCKSTEP_RETURN_IF_ERROR(
      ReadFloat(fields, "min_p", from_zero, 1, &sampling.min_p));
  LOCKSTEP_RETURN_IF_ERROR(ReadFloat(fields, "repetition_penalty", 0,
                                     kMostPenalty,
                                     &sampling.repetition_penalty));
  LOCKSTEP_RETURN_IF_ERROR(ReadInt(fields, "top_k", -1, &sampling.top_k));
  LOCKSTEP_RETURN_IF_ERROR(
      ReadInt(fields, "max_new_tokens", 1, &sampling.max_tokens));
  // How some say that all are kept.
  if (sampling.top_k == -1) sampling.top_k = 0;
  return sampling;
}

absl::StatusOr<SamplingDefaults> SamplingFromGguf(const GgufFile& file) {
  json config = json::object();
  for (const auto& [key, name] : kGgufKeys) {
    if (file.Find(key) == nullptr) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(const double value, file.GetDouble(key));
    config[name] = value;
  }
  if (file.Find(kGgufTopK) != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(config["top_k"], file.GetUint(kGgufTopK));
  }
  return SamplingFromGenerationConfig(config, file.path());
}

}  // namespace lockstep
