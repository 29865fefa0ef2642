#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "worker/collectives/collective_kind.h"
#include "worker/cuda_engine/gpu_rank.h"
#include "worker/model_spec/shard.h"
#include "worker/runtime/numerics.h"
#include "worker/weights/model_files.h"

namespace lockstep {

enum class DeviceKind { kCpu, kCuda, kAuto };

// What a rank is to compute on: --device and what goes with it.
struct DeviceChoice {
  DeviceKind kind = DeviceKind::kCpu;
  double gpu_memory_utilization = 0.9;
  // --kv_cache_type is auto.
  bool has_default_kv_type = true;
  // --collective is auto or nccl.
  bool takes_nccl = true;
  // --steps_in_flight; 0: as many as the device has.
  int steps_in_flight = 0;
  // Opens a GPU; tests have others. Null: OpenGpuRank.
  std::function<absl::StatusOr<std::unique_ptr<GpuRank>>(int ordinal)> open =
      nullptr;
};

// What a rank computes on.
struct RankDevice {
  std::unique_ptr<GpuRank> gpu;  // null: the CPU
  Numerics numerics;             // keys and values as they are kept there
  int64_t kv_memory_bytes = 0;   // of a GPU: what is left for KV pages
};

// Takes the GPU `ordinal` where `choice` says so, or leaves it to this and the
// GPU can compute the model; why it is not taken is logged. An error says why
// it can not be, where it must.
absl::StatusOr<RankDevice> ChooseDevice(const DeviceChoice& choice, int ordinal,
                                        const ModelFiles& model,
                                        const Shard& shard,
                                        const Numerics& numerics,
                                        const CudaEngineOptions& options);

// How `size` ranks with such a device exchange tensors, where `asked` is what
// --collective came to: between GPUs by NCCL, and nowhere else.
absl::StatusOr<CollectiveKind> CollectiveOn(const RankDevice& device, int size,
                                            CollectiveKind asked);

// SchedulerOptions::steps_in_flight on such a device.
absl::StatusOr<int> StepsInFlightOn(const RankDevice& device,
                                    const DeviceChoice& choice);

}  // namespace lockstep
