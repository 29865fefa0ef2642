#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>

#include "worker/device/cuda_device.h"

namespace lockstep {

// A point in a stream, which the host asks for or waits for. Recorded again it
// is the later point; before the first time it has happened.
//
// Used by one thread, which made the device current. The device outlives it.
class CudaEvent {
 public:
  static absl::StatusOr<std::unique_ptr<CudaEvent>> Create(
      const CudaDevice* device);

  ~CudaEvent();
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  absl::Status Record(CudaApi::Stream stream);
  absl::StatusOr<bool> Happened() const;
  absl::Status Synchronize() const;

  CudaApi::Event handle() const { return event_; }

 private:
  CudaEvent(const CudaDevice* device, CudaApi::Event event)
      : device_(device), event_(event) {}

  const CudaDevice* const device_;
  const CudaApi::Event event_;
};

}  // namespace lockstep
