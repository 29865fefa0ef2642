#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <string>

#include "kernels/attention/kv_type.h"
#include "kernels/weights/arithmetic.h"

namespace lockstep {

// What decides the bits of an answer, besides the model, its tensor-parallel
// size and the request. Nothing else does: not the instruction set, nor the
// number of threads.
struct Numerics {
  kernels::Arithmetic arithmetic = kernels::Arithmetic::kStrict;
  kernels::KvType kv_type = kernels::KvType::kF32;

  // As the flags say them.
  const char* arithmetic_name() const {
    return kernels::ArithmeticName(arithmetic);
  }
  const char* kv_type_name() const { return kernels::KvTypeName(kv_type); }
};

// From the values of --arithmetic (strict, fast) and --kv_cache_type (fp32,
// fp16, bf16, int8, or auto: fp16 in fast arithmetic, fp32 in strict).
// INVALID_ARGUMENT names the flag, its value and what it may be.
absl::StatusOr<Numerics> ParseNumerics(absl::string_view arithmetic,
                                       absl::string_view kv_cache_type);

// Tells apart what gives different bits: a digest, in hex. Groups of one build
// with the same one answer a request with the same bits, so any of them may
// continue another's stream. `model` is the model's own fingerprint, `sum_cuts`
// how the group cuts its sums, as SumCuts says it.
std::string GenerationFingerprint(absl::string_view model,
                                  const Numerics& numerics,
                                  absl::Span<const int> sum_cuts);

}  // namespace lockstep
