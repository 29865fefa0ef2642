#include "worker/runtime/numerics.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include "common/digest.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

using kernels::Arithmetic;
using kernels::KvType;

absl::StatusOr<Arithmetic> ParseArithmetic(absl::string_view text) {
  for (const Arithmetic arithmetic : {Arithmetic::kStrict, Arithmetic::kFast}) {
    if (text == kernels::ArithmeticName(arithmetic)) return arithmetic;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--arithmetic is \"", text, "\"; it must be fast or strict."));
}

absl::StatusOr<KvType> ParseKvType(absl::string_view text,
                                   Arithmetic arithmetic) {
  if (text == "auto") {
    return arithmetic == Arithmetic::kFast ? KvType::kF16 : KvType::kF32;
  }
  for (const KvType type : kernels::kKvTypes) {
    if (text == kernels::KvTypeName(type)) return type;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--kv_cache_type is \"", text,
                   "\"; it must be auto, fp32, fp16, bf16 or int8."));
}

}  // namespace

absl::StatusOr<Numerics> ParseNumerics(absl::string_view arithmetic,
                                       absl::string_view kv_cache_type) {
  Numerics numerics;
  LOCKSTEP_ASSIGN_OR_RETURN(numerics.arithmetic, ParseArithmetic(arithmetic));
  LOCKSTEP_ASSIGN_OR_RETURN(numerics.kv_type,
                            ParseKvType(kv_cache_type, numerics.arithmetic));
  return numerics;
}

std::string GenerationFingerprint(absl::string_view model,
                                  const Numerics& numerics,
                                  absl::Span<const int> sum_cuts) {
  DigestBuilder builder;
  builder.Add(model);
  builder.Add(numerics.arithmetic_name());
  builder.Add(numerics.kv_type_name());
  builder.Add(sum_cuts);
  return ToHex(builder.Finish());
}

}  // namespace lockstep
