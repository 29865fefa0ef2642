#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "worker/collectives/collective.h"
#include "worker/device/cuda_stream.h"
#include "worker/device/device_arena.h"

namespace lockstep {

// A collective of a device's memory for tensors of the host: each is copied to
// the device, exchanged there and copied back. For what is checked before the
// first step; a step's tensors lie on the device.
//
//   StagedCollective staged(&nccl, stream);
//   LOCKSTEP_RETURN_IF_ERROR(TestCollective(&staged, timeout));
//
// Both outlive it. Every copy is waited for, so nothing of it reads or writes
// the host's tensors after a call, whatever became of the call. It frees device
// memory when its own stream is idle and waits for no other device then, so no
// rank can wait for one that waits for it.
class StagedCollective final : public Collective {
 public:
  StagedCollective(Collective* on_device, CudaStream* stream)
      : on_device_(on_device), stream_(stream) {}

  int rank() const override { return on_device_->rank(); }
  int size() const override { return on_device_->size(); }
  bool sums_in_rank_order() const override {
    return on_device_->sums_in_rank_order();
  }
  absl::Status AllReduceSum(absl::Span<float> data) override;
  absl::Status AllGather(absl::Span<const float> in,
                         absl::Span<float> out) override;
  void SetTimeout(absl::Duration timeout) override {
    on_device_->SetTimeout(timeout);
  }
  void End(const absl::Status& error) override { on_device_->End(error); }
  int64_t num_all_reduces() const override {
    return on_device_->num_all_reduces();
  }
  int64_t num_all_gathers() const override {
    return on_device_->num_all_gathers();
  }

 private:
  // Room on the device for so many floats, at `memory_`.
  absl::Status Reserve(size_t floats);
  absl::Status CopyIn(absl::Span<const float> from, float* to);
  absl::Status CopyOut(const float* from, absl::Span<float> to);

  Collective* const on_device_;
  CudaStream* const stream_;
  std::unique_ptr<DeviceArena> arena_;
  float* memory_ = nullptr;
};

}  // namespace lockstep
