#include "worker/device/cuda_stream.h"

#include "common/status_macros.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<CudaStream>> CudaStream::Create(
    const CudaDevice* device) {
  CudaApi::Stream stream = nullptr;
  LOCKSTEP_RETURN_IF_ERROR(device->Check(
      device->api().stream_create(&stream, CudaApi::kNonBlockingStream),
      "cuStreamCreate"));
  return std::unique_ptr<CudaStream>(new CudaStream(device, stream));
}

CudaStream::~CudaStream() { device_->api().stream_destroy(stream_); }

absl::Status CudaStream::CopyToDevice(CudaApi::Address to, const void* from,
                                      size_t bytes) {
  return device_->Check(device_->api().copy_to_device(to, from, bytes, stream_),
                        "cuMemcpyHtoDAsync");
}

absl::Status CudaStream::CopyToHost(void* to, CudaApi::Address from,
                                    size_t bytes) {
  return device_->Check(device_->api().copy_to_host(to, from, bytes, stream_),
                        "cuMemcpyDtoHAsync");
}

absl::Status CudaStream::CopyOnDevice(CudaApi::Address to,
                                      CudaApi::Address from, size_t bytes) {
  return device_->Check(device_->api().copy_on_device(to, from, bytes, stream_),
                        "cuMemcpyDtoDAsync");
}

absl::Status CudaStream::Fill(CudaApi::Address to, unsigned char value,
                              size_t bytes) {
  return device_->Check(device_->api().fill(to, value, bytes, stream_),
                        "cuMemsetD8Async");
}

absl::Status CudaStream::WaitFor(const CudaEvent& event) {
  return device_->Check(
      device_->api().stream_wait(stream_, event.handle(), /*flags=*/0),
      "cuStreamWaitEvent");
}

absl::Status CudaStream::Synchronize() {
  return device_->Check(device_->api().stream_synchronize(stream_),
                        "cuStreamSynchronize");
}

absl::StatusOr<bool> CudaStream::Done() {
  const CudaApi::Result result = device_->api().stream_query(stream_);
  if (result == CudaApi::kNotReady) return false;
  LOCKSTEP_RETURN_IF_ERROR(device_->Check(result, "cuStreamQuery"));
  return true;
}

}  // namespace lockstep
