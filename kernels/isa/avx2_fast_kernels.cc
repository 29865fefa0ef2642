#include "kernels/isa/kernel_table.h"
#include "kernels/product/fast_gemm.h"
#include "kernels/product/quantize_kernel.h"
#include "kernels/simd/integers_avx2.h"

namespace lockstep::kernels {

const FastKernels kAvx2FastKernels = {
    .tile_rows = Avx2Integers::kMaxFastRows,
    .quantize = QuantizeRows<Avx2Integers>,
    .gemm = FastGemm<Avx2Integers>,
};

}  // namespace lockstep::kernels
