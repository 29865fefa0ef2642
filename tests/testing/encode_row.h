#pragma once

#include <absl/types/span.h>

#include <string>

#include "kernels/weights/dtype.h"

namespace lockstep::testing {

// The bytes of one row of `values` in `type`, rounded to nearest; the inverse
// of kernels::DecodeRow. Quantized plainly: good enough for tests, not for use.
// REQUIRES: values.size() % kernels::BlockValues(type) == 0.
std::string EncodeRow(kernels::DType type, absl::Span<const float> values);

}  // namespace lockstep::testing
