#include "kernels/fast_gemm.h"
#include "kernels/integers_avx512.h"
#include "kernels/kernel_table.h"
#include "kernels/quantize_kernel.h"

namespace lockstep::kernels {

const FastKernels kAvx512FastKernels = {
    .tile_rows = Avx512Integers::kMaxFastRows,
    .quantize = QuantizeRows<Avx512Integers>,
    .gemm = FastGemm<Avx512Integers>,
};

}  // namespace lockstep::kernels
