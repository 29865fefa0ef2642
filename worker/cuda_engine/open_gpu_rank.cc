// In programs that are built with --config=cuda.
#include "worker/cuda_engine/cuda_rank.h"
#include "worker/cuda_engine/gpu_rank.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<GpuRank>> OpenGpuRank(int ordinal) {
  return CudaRank::Open(ordinal,
                        {.cuda = "libcuda.so.1", .nccl = "libnccl.so.2"});
}

}  // namespace lockstep
