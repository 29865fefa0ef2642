#include <utility>

#include "kernels/cuda/emulation/launch.h"
#include "tests/testing/device/test_gpu.h"

namespace lockstep {
namespace {

constexpr int kDriverVersion = 13000;
constexpr int64_t kMemoryBytes = 1 << 30;

}  // namespace

TestGpu::TestGpu(int devices) : fake_(new FakeCuda()) {
  fake_->SetMachine(devices, kDriverVersion, kMemoryBytes);
  emulation::SetStreams(
      [fake = fake_](CUstream_st* stream, std::function<int()> grid) {
        return fake->Launch(stream, std::move(grid));
      });
}

TestGpu::~TestGpu() {
  emulation::SetStreams(nullptr);
  delete fake_;
}

std::string TestGpu::cuda_library() const { return fake_->library(); }
std::string TestGpu::nccl_library() const { return fake_->library(); }

}  // namespace lockstep
