#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <memory>

#include "worker/device/cuda_device.h"
#include "worker/device/cuda_event.h"

namespace lockstep {

// Work that a device does in order, while the host goes on.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto stream, CudaStream::Create(device.get()));
//   LOCKSTEP_RETURN_IF_ERROR(stream->CopyToDevice(address, staged, bytes));
//   …launch kernels on stream->handle()…
//   LOCKSTEP_RETURN_IF_ERROR(stream->Synchronize());
//
// Used by one thread, which made the device current. The device outlives it.
// Destroyed while work is in progress, it lets that end. Errors of the work
// itself come out of whatever call is next.
class CudaStream {
 public:
  static absl::StatusOr<std::unique_ptr<CudaStream>> Create(
      const CudaDevice* device);

  ~CudaStream();
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  // The host's memory must stay, and unchanged, until the copy has run; it does
  // so beside the host only where it is page-locked: see PinnedMemory.
  absl::Status CopyToDevice(CudaApi::Address to, const void* from,
                            size_t bytes);
  absl::Status CopyToHost(void* to, CudaApi::Address from, size_t bytes);
  absl::Status CopyOnDevice(CudaApi::Address to, CudaApi::Address from,
                            size_t bytes);
  absl::Status Fill(CudaApi::Address to, unsigned char value, size_t bytes);

  // What comes next on this stream waits for what the event was recorded after.
  absl::Status WaitFor(const CudaEvent& event);

  // Waits for all so far.
  absl::Status Synchronize();
  // Whether all so far has run.
  absl::StatusOr<bool> Done();

  CudaApi::Stream handle() const { return stream_; }
  const CudaDevice& device() const { return *device_; }

 private:
  CudaStream(const CudaDevice* device, CudaApi::Stream stream)
      : device_(device), stream_(stream) {}

  const CudaDevice* const device_;
  const CudaApi::Stream stream_;
};

}  // namespace lockstep
