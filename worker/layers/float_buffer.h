#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace lockstep {

// Floats on the heap, aligned for SIMD, not initialized: their memory is taken
// when it is first written.
class FloatBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  FloatBuffer() = default;
  explicit FloatBuffer(size_t count)
      : size_(count),
        data_(static_cast<float*>(std::aligned_alloc(
            kAlignment,
            (count * sizeof(float) / kAlignment + 1) * kAlignment))) {}

  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };

  size_t size_ = 0;
  std::unique_ptr<float[], Free> data_;
};

}  // namespace lockstep
