// In programs that are built without --config=cuda.
#include "worker/cuda_engine/gpu_rank.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<GpuRank>> OpenGpuRank(int /*ordinal*/) {
  return absl::FailedPreconditionError(
      "This program was built without kernels for GPUs: see --config=cuda in "
      "docs/cuda.md.");
}

}  // namespace lockstep
