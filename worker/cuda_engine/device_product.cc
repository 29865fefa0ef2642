#include "worker/cuda_engine/device_product.h"

#include "common/status_macros.h"
#include "kernels/cuda/cuda_types.h"
#include "kernels/cuda/dense_product.h"
#include "kernels/cuda/quantized_product.h"
#include "kernels/weights/dtype.h"
#include "worker/device/cuda_device.h"

namespace lockstep {
namespace {

template <typename X, typename Y>
absl::Status Launch(const cuda::ProductArgs<X, Y>& args, CudaStream* stream) {
  const CudaDevice& device = stream->device();
  return kernels::IsPlain(args.w.type)
             ? device.Check(cuda::MultiplyDense(args, stream->handle()),
                            "MultiplyDense")
             : device.Check(cuda::MultiplyStored(args, stream->handle()),
                            "MultiplyStored");
}

}  // namespace

template <typename X, typename Y>
absl::Status LaunchProduct(const DeviceMatrix& matrix, const float* bias,
                           const X* x, int count, Y* y, CudaStream* stream) {
  const int rows = matrix.rows();
  int first = 0;
  for (const cuda::StoredMatrix& part : matrix.parts) {
    const cuda::ProductArgs<X, Y> args = {
        part, bias == nullptr ? nullptr : bias + first, x, count, y + first,
        rows};
    LOCKSTEP_RETURN_IF_ERROR(Launch(args, stream));
    first += part.rows;
  }
  return absl::OkStatus();
}

template <typename X, typename Y>
absl::Status LaunchProduct(const cuda::StoredMatrix& matrix, const X* x,
                           int count, Y* y, ptrdiff_t y_stride,
                           CudaStream* stream) {
  const cuda::ProductArgs<X, Y> args = {matrix, nullptr, x, count, y, y_stride};
  return Launch(args, stream);
}

template <typename X, typename Y>
absl::Status LaunchProducts(const DeviceMatrix& matrix,
                            const cuda::ProductGroups& groups, const X* x, Y* y,
                            CudaStream* stream) {
  const CudaDevice& device = stream->device();
  const int rows = matrix.rows();
  int first = 0;
  for (const cuda::StoredMatrix& part : matrix.parts) {
    const cuda::ProductArgs<X, Y> args = {part, nullptr, x, 0, y + first, rows};
    const absl::Status status =
        kernels::IsPlain(part.type)
            ? device.Check(
                  cuda::MultiplyDenseGroups(args, groups, stream->handle()),
                  "MultiplyDenseGroups")
            : device.Check(
                  cuda::MultiplyStoredGroups(args, groups, stream->handle()),
                  "MultiplyStoredGroups");
    LOCKSTEP_RETURN_IF_ERROR(status);
    first += part.rows;
  }
  return absl::OkStatus();
}

using cuda::BFloat16;

template absl::Status LaunchProduct(const DeviceMatrix&, const float*,
                                    const float*, int, float*, CudaStream*);
template absl::Status LaunchProduct(const DeviceMatrix&, const float*,
                                    const BFloat16*, int, float*, CudaStream*);
template absl::Status LaunchProduct(const DeviceMatrix&, const float*,
                                    const BFloat16*, int, BFloat16*,
                                    CudaStream*);
template absl::Status LaunchProduct(const cuda::StoredMatrix&, const float*,
                                    int, float*, ptrdiff_t, CudaStream*);
template absl::Status LaunchProduct(const cuda::StoredMatrix&, const BFloat16*,
                                    int, float*, ptrdiff_t, CudaStream*);
template absl::Status LaunchProducts(const DeviceMatrix&,
                                     const cuda::ProductGroups&, const float*,
                                     float*, CudaStream*);
template absl::Status LaunchProducts(const DeviceMatrix&,
                                     const cuda::ProductGroups&,
                                     const BFloat16*, float*, CudaStream*);
template absl::Status LaunchProducts(const DeviceMatrix&,
                                     const cuda::ProductGroups&,
                                     const BFloat16*, BFloat16*, CudaStream*);

}  // namespace lockstep
