#pragma once

#include <absl/status/status.h>

#include "common/gguf_file.h"
#include "worker/model_spec/model_config.h"

namespace lockstep {

// Where a GGUF file does not say it: the context Llama 3 was trained with
// before its frequencies were scaled (Llama 3.1 model card).
inline constexpr int kLlama3OriginalContext = 8192;

// GGUF keeps Llama 3's rope scaling as a tensor `rope_freqs.weight`: what each
// inverse frequency is divided by. Finds the rule behind these numbers and sets
// `rope->scaling` to it; does nothing where there is no such tensor.
// UNIMPLEMENTED where the numbers are not those of Llama 3's rule, with low and
// high frequency factors 1 and 4 and `original_context`.
// REQUIRES: theta and rotary_dim are set.
absl::Status ReadRopeFactors(const GgufFile& file, int original_context,
                             RopeConfig* rope);

// LongRope's factors are there as they are, in the tensors
// rope_factors_short.weight and rope_factors_long.weight.
bool HasLongRopeFactors(const GgufFile& file);

// Sets `rope->factors` and `rope->long_factors`. INVALID_ARGUMENT names the
// tensor that is missing or wrong. REQUIRES: rotary_dim is set.
absl::Status ReadLongRopeFactors(const GgufFile& file, RopeConfig* rope);

}  // namespace lockstep
