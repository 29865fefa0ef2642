#pragma once

#include "kernels/weights/packed_matrix.h"

namespace lockstep::kernels {

// Rows [begin, end) of X, at least one, and the matrix that they meet: those of
// the tokens that one expert gets.
//
// Groups that are multiplied together follow each other from row 0 on without
// gaps; their matrices have the same columns, slices and arithmetic.
struct RowGroup {
  const PackedMatrix* w;
  int begin;
  int end;

  int rows() const { return end - begin; }
};

}  // namespace lockstep::kernels
