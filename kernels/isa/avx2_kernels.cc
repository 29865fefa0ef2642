#include "kernels/attention/attend_kernel.h"
#include "kernels/isa/kernel_table.h"
#include "kernels/product/gemm_kernel.h"
#include "kernels/simd/simd_avx2.h"
#include "kernels/simd/vector_kernels.h"

namespace lockstep::kernels {

const KernelTable kAvx2Kernels = {
    .isa = "avx2",
    .fast = &kAvx2FastKernels,
    .gemm = Gemm<Avx2>,
    .attend_chunk = AttendChunk<Avx2>,
    .merge_chunk = MergeChunk<Avx2>,
    .finish_attention = FinishAttention<Avx2>,
    .rms_norm = RmsNorm<Avx2>,
    .gated_mul = GatedMul<Avx2>,
    .soft_cap = SoftCap<Avx2>,
};

}  // namespace lockstep::kernels
