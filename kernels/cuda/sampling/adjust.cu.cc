#include "kernels/cuda/sampling/adjust.h"

#include <cstddef>

#include "kernels/cuda/device.h"
#include "kernels/cuda/reduction.h"
#include "kernels/cuda/sampling/block_join.h"
#include "kernels/cuda/sampling/logit_order.h"

namespace lockstep::cuda {
namespace {

__device__ void Mask(const uint32_t* mask, int vocabulary, float* logits) {
  constexpr float kLeastAllowed = -1e30f;
  for (int id = threadIdx.x; id < vocabulary; id += kRowThreads) {
    const bool is_allowed = (mask[id / 32] >> (id % 32) & 1) != 0;
    // NaN compares as less.
    const float allowed =
        logits[id] > kLeastAllowed ? logits[id] : kLeastAllowed;
    logits[id] = is_allowed ? allowed : MinusInfinity();
  }
}

__device__ float Adjusted(float logit, const LogitAdjustment& adjustment,
                          const AdjustedRow& row) {
  if (adjustment.bias != 0) logit = __fadd_rn(logit, adjustment.bias);
  if (adjustment.is_penalized) {
    logit = logit > 0 ? __fdiv_rn(logit, row.repetition)
                      : __fmul_rn(logit, row.repetition);
    if (adjustment.count > 0) {
      const float times = static_cast<float>(adjustment.count);
      logit = __fsub_rn(__fsub_rn(logit, row.presence),
                        __fmul_rn(row.frequency, times));
    }
  }
  return adjustment.is_masked ? MinusInfinity() : logit;
}

__device__ void Restore(const AdjustArgs& args, const AdjustedRow& row,
                        float* logits) {
  for (int i = threadIdx.x; i < row.num_adjustments; i += kRowThreads) {
    const int at = row.first_adjustment + i;
    logits[args.adjustments[at].id] = args.kept[at];
  }
}

// A block a row, as in all of these.
__global__ void __launch_bounds__(kRowThreads, 1)
    AdjustKernel(AdjustArgs args) {
  JoinScratch joins(DynamicShared<unsigned char>());
  const AdjustedRow row = args.rows[blockIdx.x];
  float* const logits = args.logits + row.row * args.stride;
  if (row.mask >= 0) Mask(args.masks + row.mask, args.vocabulary, logits);
  if (row.num_adjustments == 0) return;
  __syncthreads();
  for (int i = threadIdx.x; i < row.num_adjustments; i += kRowThreads) {
    const int at = row.first_adjustment + i;
    const LogitAdjustment adjustment = args.adjustments[at];
    float& logit = logits[adjustment.id];
    args.kept[at] = logit;
    logit = Adjusted(logit, adjustment, row);
  }
  if (row.masks_ids == 0) return;
  __syncthreads();
  uint32_t possible = 0;
  for (int id = threadIdx.x; id < args.vocabulary; id += kRowThreads) {
    possible |= KeyOf(logits[id]) > KeyOf(MinusInfinity()) ? 1 : 0;
  }
  if (BlockJoin(possible, Add(), &joins) == 0) Restore(args, row, logits);
}

__global__ void __launch_bounds__(kRowThreads) RestoreKernel(AdjustArgs args) {
  const AdjustedRow row = args.rows[blockIdx.x];
  Restore(args, row, args.logits + row.row * args.stride);
}

CudaError LaunchRows(void (*kernel)(AdjustArgs), const AdjustArgs& args,
                     Stream stream) {
  if (args.count == 0) return kCudaSuccess;
  return Launch(kernel,
                {dim3{static_cast<unsigned>(args.count)}, dim3{kRowThreads},
                 JoinScratch::kBytes},
                stream, args);
}

}  // namespace

CudaError AdjustLogits(const AdjustArgs& args, Stream stream) {
  return LaunchRows(AdjustKernel, args, stream);
}

CudaError RestoreLogits(const AdjustArgs& args, Stream stream) {
  return LaunchRows(RestoreKernel, args, stream);
}

}  // namespace lockstep::cuda
