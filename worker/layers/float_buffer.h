#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace lockstep {

// Floats on the heap, aligned for SIMD, not initialized: their memory is taken
// when it is first written. Without address space for them the process ends.
class FloatBuffer {
 public:
  static constexpr size_t kAlignment = 64;  // bytes

  FloatBuffer() = default;
  explicit FloatBuffer(size_t count);

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
