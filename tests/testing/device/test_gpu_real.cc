#include "tests/testing/device/test_gpu.h"

namespace lockstep {

TestGpu::TestGpu(int) {}
TestGpu::~TestGpu() = default;

std::string TestGpu::cuda_library() const { return "libcuda.so.1"; }
std::string TestGpu::nccl_library() const { return "libnccl.so.2"; }

}  // namespace lockstep
