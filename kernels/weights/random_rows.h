#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/weights/dtype.h"

namespace lockstep::kernels {

// For tests: `rows` weight rows of `cols` columns as stored, every bit pattern
// of the integers possible and the factors moderate.
std::vector<uint8_t> RandomRows(DType type, int rows, int cols,
                                std::mt19937& random);

}  // namespace lockstep::kernels
