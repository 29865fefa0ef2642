#include "worker/device_flags.h"

#include <absl/strings/str_cat.h>
#include <gflags/gflags.h>

DECLARE_string(collective);
DECLARE_string(kv_cache_type);

DEFINE_string(device, "auto",
              "What the model is computed on: cpu, cuda (a GPU, in a worker "
              "built with --config=cuda) or auto (a GPU where there is one "
              "that computes the model, else the CPU).");
DEFINE_double(gpu_memory_utilization, 0.9,
              "The share of a GPU's memory that may be in use, above 0 and at "
              "most 1: what weights and workspaces leave of it is for KV "
              "pages.");
DEFINE_int32(steps_in_flight, 0,
             "Steps that are launched and not done: 1, 2 (on a GPU: the next "
             "one is planned while one runs) or 0 (2 on a GPU, else 1). It "
             "changes no token. The same on all ranks.");

namespace lockstep {
namespace {

constexpr struct {
  DeviceKind kind;
  const char* name;
} kKinds[] = {{DeviceKind::kCpu, "cpu"},
              {DeviceKind::kCuda, "cuda"},
              {DeviceKind::kAuto, "auto"}};

}  // namespace

absl::StatusOr<DeviceChoice> DeviceChoiceFromFlags() {
  DeviceChoice choice;
  choice.gpu_memory_utilization = FLAGS_gpu_memory_utilization;
  choice.has_default_kv_type = FLAGS_kv_cache_type == "auto";
  choice.takes_nccl = FLAGS_collective == "auto" || FLAGS_collective == "nccl";
  // So that NaN is refused as well.
  if (!(FLAGS_gpu_memory_utilization > 0 &&
        FLAGS_gpu_memory_utilization <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--gpu_memory_utilization is ", FLAGS_gpu_memory_utilization,
        "; it must be above 0 and at most 1."));
  }
  if (FLAGS_steps_in_flight < 0 || FLAGS_steps_in_flight > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("--steps_in_flight is ", FLAGS_steps_in_flight,
                     "; it must be from 0 to 2."));
  }
  choice.steps_in_flight = FLAGS_steps_in_flight;
  for (const auto& [kind, name] : kKinds) {
    if (FLAGS_device != name) continue;
    choice.kind = kind;
    return choice;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--device is \"", FLAGS_device, "\"; it must be cpu, cuda or auto."));
}

std::string ToString(const DeviceChoice& choice) {
  std::string text;
  for (const auto& [kind, name] : kKinds) {
    if (choice.kind == kind) text = absl::StrCat("--device=", name);
  }
  return absl::StrCat(
      text, " --gpu_memory_utilization=", choice.gpu_memory_utilization,
      " --steps_in_flight=", choice.steps_in_flight);
}

}  // namespace lockstep
