#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/gguf_file.h"

namespace lockstep {

// How a model wants its tokens chosen where a request does not say it; the
// names are proto/sampling.proto's, and so are the ranges.
struct SamplingDefaults {
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> repetition_penalty;
  std::optional<int> top_k;
  std::optional<int> max_tokens;

  // "temperature=0.6 top_k=20"; empty where there are none.
  std::string ToString() const;
};

// From a generation_config.json: those of its fields that vLLM takes, too. Like
// there do_sample does not count: who wants the most probable tokens says so.
// INVALID_ARGUMENT names `path`, the field and what is expected of it.
absl::StatusOr<SamplingDefaults> SamplingFromGenerationConfig(
    const nlohmann::json& config, const std::string& path);

// From the keys "general.sampling.…" of GGUF metadata, in the same way.
absl::StatusOr<SamplingDefaults> SamplingFromGguf(const GgufFile& file);

}  // namespace lockstep
