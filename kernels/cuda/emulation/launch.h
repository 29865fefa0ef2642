#pragma once

#include <cstddef>
#include <functional>

#include "kernels/cuda/emulation/grid.h"

struct CUstream_st;

namespace lockstep::emulation {

struct GridShape {
  Dim3 grid;
  Dim3 block;
  size_t shared_bytes = 0;
};

// Starts a grid: on no stream, or where streams are not set, it runs at once on
// the calling thread, else when its stream comes to it. A fault is told on
// stderr. Returns what a launch does: a cudaError_t, 0 for success, or 719 for
// the fault of a grid that has run.
int LaunchGrid(CUstream_st* stream, const GridShape& shape,
               std::function<void()> thread);

// Puts work on a stream; the work returns 0, or the error that it ends with.
using Enqueue = std::function<int(CUstream_st*, std::function<int()> work)>;

// Where the launches of all threads go from now on. While none is in progress.
void SetStreams(Enqueue enqueue);

}  // namespace lockstep::emulation
