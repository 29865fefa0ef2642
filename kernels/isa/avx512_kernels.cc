#include "kernels/attention/attend_kernel.h"
#include "kernels/isa/kernel_table.h"
#include "kernels/product/gemm_kernel.h"
#include "kernels/simd/simd_avx512.h"
#include "kernels/simd/vector_kernels.h"

namespace lockstep::kernels {

const KernelTable kAvx512Kernels = {
    .isa = "avx512_vnni",
    .fast = &kAvx512FastKernels,
    .gemm = Gemm<Avx512>,
    .attend_chunk = AttendChunk<Avx512>,
    .merge_chunk = MergeChunk<Avx512>,
    .finish_attention = FinishAttention<Avx512>,
    .rms_norm = RmsNorm<Avx512>,
    .gated_mul = GatedMul<Avx512>,
    .soft_cap = SoftCap<Avx512>,
};

}  // namespace lockstep::kernels
