#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// How the weights of some modules are stored.
struct WeightScheme {
  int bits = 8;
  bool is_float = false;   // FP8 E4M3; else integers
  int64_t group_cols = 0;  // that share a scale; 0: all of a row
  int64_t group_rows = 0;  // that share one too; 0: see the scales' shape
  bool has_zeros = false;
};

// `quantization_config` of a config.json: by what method a checkpoint is
// quantized, as far as its tensors do not say it themselves. Which modules are,
// their tensors do.
struct QuantizationConfig {
  enum class Method { kFp8, kGptq, kAwq, kCompressedTensors };

  Method method = Method::kFp8;
  std::vector<WeightScheme> schemes;  // each module has one of them
  int zero_offset = 0;  // 1: GPTQ's zero points are stored less one
  // Modules that are said not to be quantized: "lm_head".
  std::vector<std::string> plain_modules;
  std::string text;  // all of it, for the fingerprint
};

// Absent where `config` has none. Whatever in it is not known to be of no
// consequence for the weights is refused: UNIMPLEMENTED names `path`, field,
// value and what is supported.
absl::StatusOr<std::optional<QuantizationConfig>> ReadQuantizationConfig(
    const nlohmann::json& config, const std::string& path);

}  // namespace lockstep
