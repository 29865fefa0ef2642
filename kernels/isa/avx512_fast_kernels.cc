#include "kernels/isa/kernel_table.h"
#include "kernels/product/fast_gemm.h"
#include "kernels/product/quantize_kernel.h"
#include "kernels/simd/integers_avx512.h"

namespace lockstep::kernels {

const FastKernels kAvx512FastKernels = {
    .tile_rows = Avx512Integers::kMaxFastRows,
    .quantize = QuantizeRows<Avx512Integers>,
    .gemm = FastGemm<Avx512Integers>,
};

}  // namespace lockstep::kernels
