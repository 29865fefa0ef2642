#include "worker/device/cuda_event.h"

#include "common/status_macros.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<CudaEvent>> CudaEvent::Create(
    const CudaDevice* device) {
  CudaApi::Event event = nullptr;
  LOCKSTEP_RETURN_IF_ERROR(
      device->Check(device->api().event_create(&event, CudaApi::kUntimedEvent),
                    "cuEventCreate"));
  return std::unique_ptr<CudaEvent>(new CudaEvent(device, event));
}

CudaEvent::~CudaEvent() { device_->api().event_destroy(event_); }

absl::Status CudaEvent::Record(CudaApi::Stream stream) {
  return device_->Check(device_->api().event_record(event_, stream),
                        "cuEventRecord");
}

absl::StatusOr<bool> CudaEvent::Happened() const {
  const CudaApi::Result result = device_->api().event_query(event_);
  if (result == CudaApi::kNotReady) return false;
  LOCKSTEP_RETURN_IF_ERROR(device_->Check(result, "cuEventQuery"));
  return true;
}

absl::Status CudaEvent::Synchronize() const {
  return device_->Check(device_->api().event_synchronize(event_),
                        "cuEventSynchronize");
}

}  // namespace lockstep
