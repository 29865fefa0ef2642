#include "kernels/fast_gemm.h"
#include "kernels/integers_avx2.h"
#include "kernels/kernel_table.h"
#include "kernels/quantize_kernel.h"

namespace lockstep::kernels {

const FastKernels kAvx2FastKernels = {
    .tile_rows = Avx2Integers::kMaxFastRows,
    .quantize = QuantizeRows<Avx2Integers>,
    .gemm = FastGemm<Avx2Integers>,
};

}  // namespace lockstep::kernels
