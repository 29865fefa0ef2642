#include "worker/runtime/rank_device.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <utility>

#include "common/status_macros.h"
#include "kernels/attention/kv_type.h"
#include "kernels/weights/arithmetic.h"

namespace lockstep {
namespace {

using kernels::Arithmetic;
using kernels::KvType;

// Keys and values have the type of the activations there.
absl::StatusOr<Numerics> NumericsOnGpu(const DeviceChoice& choice,
                                       const Numerics& numerics) {
  const KvType type =
      numerics.arithmetic == Arithmetic::kStrict ? KvType::kF32 : KvType::kBF16;
  if (choice.has_default_kv_type || numerics.kv_type == type) {
    return Numerics{numerics.arithmetic, type};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--kv_cache_type is ", numerics.kv_type_name(),
                   "; on a GPU it is ", kernels::KvTypeName(type), " in ",
                   numerics.arithmetic_name(), " arithmetic."));
}

absl::StatusOr<RankDevice> TakeGpu(const DeviceChoice& choice, int ordinal,
                                   const ModelFiles& model, const Shard& shard,
                                   const Numerics& numerics,
                                   const CudaEngineOptions& options) {
  RankDevice device;
  LOCKSTEP_ASSIGN_OR_RETURN(device.gpu, choice.open == nullptr
                                            ? OpenGpuRank(ordinal)
                                            : choice.open(ordinal));
  if (shard.size > 1 && !choice.takes_nccl) {
    return absl::InvalidArgumentError(
        "--collective is one of the CPU's; between GPUs it must be nccl or "
        "auto.");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(device.numerics, NumericsOnGpu(choice, numerics));
  LOCKSTEP_ASSIGN_OR_RETURN(
      device.kv_memory_bytes,
      device.gpu->KvMemoryBytes(model, shard, options,
                                choice.gpu_memory_utilization));
  return device;
}

}  // namespace

absl::StatusOr<RankDevice> ChooseDevice(const DeviceChoice& choice, int ordinal,
                                        const ModelFiles& model,
                                        const Shard& shard,
                                        const Numerics& numerics,
                                        const CudaEngineOptions& options) {
  RankDevice cpu;
  cpu.numerics = numerics;
  if (choice.kind == DeviceKind::kCpu) return cpu;
  auto gpu = TakeGpu(choice, ordinal, model, shard, numerics, options);
  if (gpu.ok()) return gpu;
  if (choice.kind == DeviceKind::kCuda) {
    return absl::Status(
        gpu.status().code(),
        absl::StrCat("--device is cuda. ", gpu.status().message()));
  }
  LOG(INFO) << "computing on the CPU, not on a GPU: " << gpu.status().message();
  return cpu;
}

absl::StatusOr<CollectiveKind> CollectiveOn(const RankDevice& device, int size,
                                            CollectiveKind asked) {
  if (size == 1) return CollectiveKind::kSingle;
  if (device.gpu != nullptr) return CollectiveKind::kNccl;
  if (asked != CollectiveKind::kNccl) return asked;
  return absl::InvalidArgumentError(
      "--collective is nccl, but the ranks compute on the CPU; it must be "
      "auto, shared_memory or gloo.");
}

absl::StatusOr<int> StepsInFlightOn(const RankDevice& device,
                                    const DeviceChoice& choice) {
  const int most = device.gpu == nullptr ? 1 : 2;
  if (choice.steps_in_flight <= most) {
    return choice.steps_in_flight == 0 ? most : choice.steps_in_flight;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--steps_in_flight is ", choice.steps_in_flight,
                   ", but the CPU computes one step at a time; it must be 0 or "
                   "1."));
}

}  // namespace lockstep
