#include "kernels/attend_kernel.h"
#include "kernels/gemm_kernel.h"
#include "kernels/kernel_table.h"
#include "kernels/simd_avx512.h"
#include "kernels/vector_kernels.h"

namespace lockstep::kernels {

const KernelTable kAvx512Kernels = {
    .isa = "avx512_vnni",
    .fast = &kAvx512FastKernels,
    .gemm = Gemm<Avx512>,
    .attend_chunk = AttendChunk<Avx512>,
    .merge_chunk = MergeChunk<Avx512>,
    .finish_attention = FinishAttention<Avx512>,
    .rms_norm = RmsNorm<Avx512>,
    .silu_mul = SiluMul<Avx512>,
};

}  // namespace lockstep::kernels
