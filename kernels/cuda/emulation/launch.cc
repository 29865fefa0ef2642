#include "kernels/cuda/emulation/launch.h"

#include <cstdio>
#include <string>
#include <utility>

namespace lockstep::emulation {
namespace {

constexpr int kSuccess = 0;
constexpr int kLaunchFailure = 719;  // cudaErrorLaunchFailure

Enqueue& streams() {
  static Enqueue streams;
  return streams;
}

int Run(const GridShape& shape, const std::function<void()>& thread) {
  const std::string fault =
      RunGrid(shape.grid, shape.block, shape.shared_bytes, thread);
  if (fault.empty()) return kSuccess;
  std::fprintf(stderr, "The emulation stopped a kernel: %s.\n", fault.c_str());
  return kLaunchFailure;
}

}  // namespace

int LaunchGrid(CUstream_st* stream, const GridShape& shape,
               std::function<void()> thread) {
  if (stream == nullptr || !streams()) return Run(shape, thread);
  return streams()(stream, [shape, thread = std::move(thread)] {
    return Run(shape, thread);
  });
}

void SetStreams(Enqueue enqueue) { streams() = std::move(enqueue); }

}  // namespace lockstep::emulation
