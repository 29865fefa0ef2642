#include "worker/collectives/staged_collective.h"

#include <absl/types/span.h>

#include <algorithm>

#include "common/status_macros.h"

namespace lockstep {

absl::Status StagedCollective::AllReduceSum(absl::Span<float> data) {
  LOCKSTEP_RETURN_IF_ERROR(Reserve(data.size()));
  LOCKSTEP_RETURN_IF_ERROR(CopyIn(data, memory_));
  LOCKSTEP_RETURN_IF_ERROR(on_device_->AllReduceSum({memory_, data.size()}));
  return CopyOut(memory_, data);
}

absl::Status StagedCollective::AllGather(absl::Span<const float> in,
                                         absl::Span<float> out) {
  LOCKSTEP_RETURN_IF_ERROR(Reserve(out.size()));
  float* const own = memory_ + rank() * in.size();
  LOCKSTEP_RETURN_IF_ERROR(CopyIn(in, own));
  LOCKSTEP_RETURN_IF_ERROR(
      on_device_->AllGather({own, in.size()}, {memory_, out.size()}));
  return CopyOut(memory_, out);
}

absl::Status StagedCollective::Reserve(size_t floats) {
  const size_t bytes = std::max<size_t>(1, floats) * sizeof(float);
  if (arena_ != nullptr && arena_->bytes() >= bytes) return absl::OkStatus();
  arena_ = nullptr;
  LOCKSTEP_ASSIGN_OR_RETURN(
      arena_,
      DeviceArena::Create(&stream_->device(), "exchanges of the host", bytes));
  LOCKSTEP_ASSIGN_OR_RETURN(const CudaApi::Address address,
                            arena_->Take(bytes, "a tensor"));
  memory_ = reinterpret_cast<float*>(address);
  return absl::OkStatus();
}

absl::Status StagedCollective::CopyIn(absl::Span<const float> from, float* to) {
  if (from.empty()) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(
      stream_->CopyToDevice(reinterpret_cast<CudaApi::Address>(to), from.data(),
                            from.size() * sizeof(float)));
  return stream_->Synchronize();
}

absl::Status StagedCollective::CopyOut(const float* from,
                                       absl::Span<float> to) {
  if (to.empty()) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(
      stream_->CopyToHost(to.data(), reinterpret_cast<CudaApi::Address>(from),
                          to.size() * sizeof(float)));
  return stream_->Synchronize();
}

}  // namespace lockstep
