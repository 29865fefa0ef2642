#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep::kernels {

// Rows of `row_elements` elements that make a range of work; fewer are not
// worth a meeting of the workers.
inline int64_t RowsPerRange(int64_t row_elements) {
  constexpr int64_t kElementsPerRange = 8192;
  return std::max<int64_t>(1, kElementsPerRange / row_elements);
}

}  // namespace lockstep::kernels
