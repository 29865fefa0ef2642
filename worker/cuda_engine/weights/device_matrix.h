#pragma once

#include <vector>

#include "kernels/cuda/product_args.h"

namespace lockstep {

// A weight matrix in device memory: parts below each other, one a stored type
// of the tensors that it was made of.
struct DeviceMatrix {
  std::vector<cuda::StoredMatrix> parts;

  int rows() const {
    int rows = 0;
    for (const cuda::StoredMatrix& part : parts) rows += part.rows;
    return rows;
  }
};

}  // namespace lockstep
