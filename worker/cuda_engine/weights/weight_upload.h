#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <array>
#include <cstddef>
#include <memory>

#include "kernels/weights/dtype.h"
#include "worker/checkpoint/tensor_source.h"
#include "worker/device/cuda_event.h"
#include "worker/device/cuda_stream.h"
#include "worker/device/pinned_memory.h"

namespace lockstep {

// Copies parts of tensors to a device: a few rows at a time are read into one
// of two page-locked buffers, while the other one's are on their way.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto upload, WeightUpload::Create(stream,
//   bytes)); LOCKSTEP_RETURN_IF_ERROR(upload->Copy(tensor, part, tensor.type,
//   address)); LOCKSTEP_RETURN_IF_ERROR(stream->Synchronize());
//
// One thread, which made the device current. The stream outlives it.
class WeightUpload {
 public:
  // Of each buffer, where no row is longer.
  static constexpr size_t kUsualBytes = 4 << 20;

  static absl::StatusOr<std::unique_ptr<WeightUpload>> Create(
      CudaStream* stream, size_t buffer_bytes);

  // The part's rows one after another, as they are stored or, where `type` is
  // kF32, decoded, `added` to each value. REQUIRES: a row fits a buffer;
  // nothing is added where `type` is another.
  absl::Status Copy(const Tensor& tensor, const TensorPart& part,
                    kernels::DType type, CudaApi::Address to, float added = 0);

 private:
  struct Buffer {
    std::unique_ptr<PinnedMemory> memory;
    std::unique_ptr<CudaEvent> copied;
  };

  explicit WeightUpload(CudaStream* stream) : stream_(stream) {}

  CudaStream* const stream_;
  std::array<Buffer, 2> buffers_;
  size_t next_ = 0;  // buffer
};

}  // namespace lockstep
