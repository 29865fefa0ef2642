#include "worker/cuda_engine/weights/weight_upload.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdint>

#include "common/status_macros.h"
#include "worker/checkpoint/tensor_part.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<WeightUpload>> WeightUpload::Create(
    CudaStream* stream, size_t buffer_bytes) {
  std::unique_ptr<WeightUpload> upload(new WeightUpload(stream));
  for (Buffer& buffer : upload->buffers_) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        buffer.memory, PinnedMemory::Allocate(&stream->device(), buffer_bytes));
    LOCKSTEP_ASSIGN_OR_RETURN(buffer.copied,
                              CudaEvent::Create(&stream->device()));
  }
  return upload;
}

absl::Status WeightUpload::Copy(const Tensor& tensor, const TensorPart& part,
                                kernels::DType type, CudaApi::Address to,
                                float added) {
  const size_t row_bytes = kernels::RowBytes(type, part.cols);
  const int64_t rows_at_once = buffers_[0].memory->bytes() / row_bytes;
  CHECK_GT(rows_at_once, 0) << tensor.name;
  TensorPart rows = part;
  for (int64_t done = 0; done < part.rows; done += rows.rows) {
    rows.row_begin = part.row_begin + done;
    rows.rows = std::min(rows_at_once, part.rows - done);
    const Buffer& buffer = buffers_[next_];
    next_ = 1 - next_;
    LOCKSTEP_RETURN_IF_ERROR(buffer.copied->Synchronize());
    if (type == kernels::DType::kF32) {
      auto* const values = static_cast<float*>(buffer.memory->data());
      DecodePart(tensor, rows, values);
      if (added != 0) {
        for (int64_t i = 0; i < rows.rows * rows.cols; ++i) values[i] += added;
      }
    } else {
      ReadPart(tensor, rows, static_cast<uint8_t*>(buffer.memory->data()));
    }
    LOCKSTEP_RETURN_IF_ERROR(stream_->CopyToDevice(
        to + done * row_bytes, buffer.memory->data(), rows.rows * row_bytes));
    LOCKSTEP_RETURN_IF_ERROR(buffer.copied->Record(stream_->handle()));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
