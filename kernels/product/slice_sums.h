#pragma once

#include "kernels/weights/packed_matrix.h"

namespace lockstep::kernels {

// Partial sums of slices, merged as TreeSum does: a binary counter whose digit
// n holds the sum of 2^n slices. Fill top(), then call Push.
template <class V, int kFloats>
class SliceSums {
 public:
  float* top() { return level_[depth_]; }
  const float* result() const { return level_[0]; }

  // The top is the next slice's sum; `used` of its floats matter.
  void Push(int used) {
    ++depth_;
    for (int n = ++slices_; n % 2 == 0; n /= 2) Merge(used);
  }
  void Finish(int used) {
    while (depth_ > 1) Merge(used);
  }

 private:
  void Merge(int used) {
    float* left = level_[depth_ - 2];
    const float* right = level_[depth_ - 1];
    for (int i = 0; i < used; i += V::kWidth) {
      V::Store(left + i, V::Add(V::Load(left + i), V::Load(right + i)));
    }
    --depth_;
  }

  // kMaxSlices = 15 = 1111b: three digits and the slice that comes in.
  static_assert(PackedMatrix::kMaxSlices < 16);
  alignas(64) float level_[4][kFloats];
  int depth_ = 0;
  int slices_ = 0;
};

}  // namespace lockstep::kernels
