#pragma once

#include <cstdint>

#include "kernels/weights/dtype.h"

namespace lockstep::kernels {

// The integers and factors behind a block of a quantized type: with run = i /
// scale_values, value i is fma(scale[run], quant[i], min[run]). All but the
// last addition is exact in fp32.
struct QuantBlock {
  int8_t quant[256];  // [BlockValues(type)] with the offset (8, 32) taken off
  float scale[16];
  float min[16];     // 0 but for Q4_1, Q5_1, Q2_K, Q4_K, Q5_K and Q4_Z
  int scale_values;  // values that share a scale and a minimum
};

// REQUIRES: type is quantized.
void UnpackBlock(DType type, const uint8_t* block, QuantBlock* out);

// The scales and minima of the 8 runs of 32 values of Q4_K and Q5_K, from their
// 12 bytes.
void UnpackScales6(const uint8_t* bytes, uint8_t* scales, uint8_t* mins);

// The scales of the 16 runs of 16 values of Q3_K, from their 12 bytes, 32 taken
// off.
void UnpackScalesQ3K(const uint8_t* bytes, int8_t* scales);

}  // namespace lockstep::kernels
