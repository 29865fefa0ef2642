#pragma once

#include "kernels/cuda/cuda_types.h"

// Where tests run kernels. A test is linked with one of two: the emulation, and
// a GPU that reads and writes the test's own memory.
namespace lockstep::cuda {

bool OnGpu();

// Waits for what was launched. On a GPU it also tells of its faults.
CudaError WaitForDevice();

}  // namespace lockstep::cuda
