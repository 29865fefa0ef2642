#pragma once

#include <cstdint>

#include "kernels/weights/dtype.h"

namespace lockstep::kernels {

// Rounds `cols` values to Q8_0 or Q4_0, as ggml's reference does
// (quantize_row_q8_0_ref, quantize_row_q4_0_ref in ggml-quants.c): the largest
// magnitude of a block decides its scale. A block with a value that is not
// finite is all NaN. REQUIRES: one of these types; cols % 32 == 0.
void EncodeRow(DType type, const float* values, int64_t cols, uint8_t* out);

}  // namespace lockstep::kernels
