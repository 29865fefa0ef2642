#pragma once

#include <string>

#include "tests/testing/device/fake_cuda.h"

namespace lockstep {

// The GPUs of a test that launches kernels. A test is linked with one of two:
// the fake driver, on whose streams the emulation runs the kernels, and
// whatever GPUs the machine has.
//
//   TestGpu gpu;
//   auto driver = CudaDriver::Load(gpu.cuda_library());
//
// One at a time.
class TestGpu {
 public:
  // Of `devices` devices where they are not real.
  explicit TestGpu(int devices = 1);
  ~TestGpu();
  TestGpu(const TestGpu&) = delete;
  TestGpu& operator=(const TestGpu&) = delete;

  std::string cuda_library() const;
  std::string nccl_library() const;

  // Null on a real one.
  FakeCuda* fake() { return fake_; }

 private:
  FakeCuda* fake_ = nullptr;
};

}  // namespace lockstep
