#pragma once

#include <cstdint>
#include <string>

#include "worker/checkpoint/scale_grid.h"
#include "worker/checkpoint/tensor_source.h"

namespace lockstep {

// A matrix in FP8 E4M3 with scales, w[row, col] = scale[row, group]·f8[row,
// col], as rows of F32: fast arithmetic makes 14-bit integers of them, as of
// other floats.
class Float8Rows final : public RowReader {
 public:
  // `values` are mapped, [rows, cols]; `group_cols` of them share a scale.
  Float8Rows(const uint8_t* values, int64_t cols, const ScaleGrid& scales,
             int64_t group_cols)
      : values_(values),
        cols_(cols),
        scales_(scales),
        group_cols_(group_cols) {}

  void Read(const TensorPart& part, uint8_t* out) const override;
  std::string format() const override;

 private:
  const uint8_t* const values_;
  const int64_t cols_;
  const ScaleGrid scales_;
  const int64_t group_cols_;
};

}  // namespace lockstep
