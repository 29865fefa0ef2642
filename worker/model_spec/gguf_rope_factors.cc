#include "worker/model_spec/gguf_rope_factors.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "worker/model_spec/config_limits.h"

namespace lockstep {
namespace {

constexpr char kName[] = "rope_freqs.weight";
constexpr char kShortName[] = "rope_factors_short.weight";
constexpr char kLongName[] = "rope_factors_long.weight";
constexpr double kLowFreqFactor = 1;
constexpr double kHighFreqFactor = 4;
constexpr uint32_t kGgmlF32 = 0;
// The factors in the file are rounded to fp32, some at each step.
constexpr double kTolerance = 1e-4;

// The factor of pair i by the Llama 3.1 rule: 1 for short waves, `factor` for
// long ones, in between a blend of both frequencies.
double Llama3Factor(const RopeConfig& rope, int i) {
  const double wavelength =
      2 * std::numbers::pi *
      std::pow(double{rope.theta}, 2.0 * i / rope.rotary_dim);
  const double smooth =
      (rope.original_max_position / wavelength - rope.low_freq_factor) /
      (rope.high_freq_factor - rope.low_freq_factor);
  const double clamped = std::clamp(smooth, 0.0, 1.0);
  return 1 / ((1 - clamped) / rope.factor + clamped);
}

absl::StatusOr<std::vector<float>> ReadFactors(const GgufFile& file,
                                               const char* name, int count) {
  const auto tensor = file.tensors().find(name);
  if (tensor == file.tensors().end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path(), ": tensor ", name, " is missing."));
  }
  const GgufFile::TensorInfo& info = tensor->second;
  if (info.type != kGgmlF32 || info.shape != std::vector<int64_t>{count}) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.path(), ": tensor ", name, " is of ggml's type ", info.type,
        " and has ", info.shape.size(), " dimensions, the first of ",
        info.shape[0], ", expected type ", kGgmlF32, " (F32) and one of ",
        count, "."));
  }
  std::vector<float> factors(count);
  const size_t size = factors.size() * sizeof(float);
  const size_t left = file.bytes().size() - info.offset;
  if (left < size) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path(), " is truncated: tensor ", name, " takes ",
                     size, " bytes and ", left, " are left."));
  }
  std::memcpy(factors.data(), file.bytes().data() + info.offset, size);
  return factors;
}

absl::Status CheckFactor(const GgufFile& file, const char* name,
                         const char* which, float factor) {
  if (factor > 0 && factor <= kMaxRopeFactor) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      file.path(), ": ", which, " factor of ", name, " is ", factor,
      ", expected a number above 0 and up to ", kMaxRopeFactor, "."));
}

}  // namespace

absl::Status ReadRopeFactors(const GgufFile& file, int original_context,
                             RopeConfig* rope) {
  if (file.tensors().count(kName) == 0) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<float> factors,
                            ReadFactors(file, kName, rope->rotary_dim / 2));

  rope->scaling = RopeConfig::Scaling::kLlama3;
  rope->low_freq_factor = kLowFreqFactor;
  rope->high_freq_factor = kHighFreqFactor;
  rope->original_max_position = original_context;
  // The longest wave is divided by the whole factor.
  rope->factor = factors.back();
  LOCKSTEP_RETURN_IF_ERROR(CheckFactor(file, kName, "the last", rope->factor));
  for (size_t i = 0; i < factors.size(); ++i) {
    const double expected = Llama3Factor(*rope, static_cast<int>(i));
    if (std::abs(factors[i] - expected) <= kTolerance * expected) continue;
    return absl::UnimplementedError(absl::StrCat(
        file.path(), ": the factor ", i, " of ", kName, " is ", factors[i],
        "; only Llama 3's rule is supported, which gives ", expected,
        " for an original context of ", original_context, "."));
  }
  return absl::OkStatus();
}

bool HasLongRopeFactors(const GgufFile& file) {
  return file.tensors().count(kLongName) > 0;
}

absl::Status ReadLongRopeFactors(const GgufFile& file, RopeConfig* rope) {
  for (const auto& [name, factors] : {std::pair{kShortName, &rope->factors},
                                      {kLongName, &rope->long_factors}}) {
    LOCKSTEP_ASSIGN_OR_RETURN(*factors,
                              ReadFactors(file, name, rope->rotary_dim / 2));
    for (const float factor : *factors) {
      LOCKSTEP_RETURN_IF_ERROR(CheckFactor(file, name, "a", factor));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep
