#pragma once

#include "kernels/attention/attend_args.h"
#include "kernels/product/fast_kernel_args.h"
#include "kernels/product/gemm_args.h"
#include "kernels/simd/gate.h"

namespace lockstep::kernels {

// Those of the fast product; see fast_gemm_kernel.h for what they compute.
struct FastKernels {
  int tile_rows;  // of quantized_rows.h
  void (*quantize)(const QuantizeArgs& args);
  void (*gemm)(const FastGemmArgs& args);
};

extern const FastKernels kReferenceFastKernels;
extern const FastKernels kAvx2FastKernels;
extern const FastKernels kAvx512FastKernels;

// One instruction set's kernels; each works on the calling thread alone and
// gives the bits that lanes.h, dtype.h and the reference define.
struct KernelTable {
  const char* isa;
  const FastKernels* fast;
  void (*gemm)(const GemmArgs& args);
  // Sums of positions kAttendChunk·chunk … of the tile; there is at least one.
  void (*attend_chunk)(const AttendArgs& args, int chunk, AttendSums sums);
  // Adds the sums of the chunk that follows those of `sums`.
  void (*merge_chunk)(const AttendArgs& args, AttendSums chunk,
                      AttendSums sums);
  // out = sums.out / sums.sum
  void (*finish_attention)(const AttendArgs& args, AttendSums sums);
  void (*rms_norm)(const float* x, int dim, const float* weight, float eps,
                   float* y);
  // y = gate(x)·up
  void (*gated_mul)(Gate gate, const float* x, const float* up, int dim,
                    float* y);
  // x = cap·tanh(x / cap)
  void (*soft_cap)(float* x, int count, float cap);
};

extern const KernelTable kReferenceKernels;
extern const KernelTable kAvx2Kernels;  // needs AVX2, FMA and F16C
// Needs AVX-512 F, BW, VL, DQ and VNNI too.
extern const KernelTable kAvx512Kernels;

}  // namespace lockstep::kernels
