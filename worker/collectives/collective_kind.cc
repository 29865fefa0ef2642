#include "worker/collectives/collective_kind.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

namespace lockstep {

const char* CollectiveName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kSingle:
      return "single";
    case CollectiveKind::kSharedMemory:
      return "shared_memory";
    case CollectiveKind::kGloo:
      return "gloo";
    case CollectiveKind::kNccl:
      return "nccl";
  }
  return "";
}

absl::StatusOr<CollectiveKind> ParseCollective(absl::string_view flag,
                                               int tensor_parallel_size,
                                               int num_nodes) {
  if (flag != "auto" && flag != "shared_memory" && flag != "gloo" &&
      flag != "nccl") {
    return absl::InvalidArgumentError(
        absl::StrCat("--collective is \"", flag,
                     "\"; it must be auto, shared_memory, gloo or nccl."));
  }
  if (flag == "shared_memory" && num_nodes > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--collective is shared_memory, but the hosts of --num_nodes ",
        num_nodes, " share none; it must be auto or gloo."));
  }
  if (tensor_parallel_size == 1) return CollectiveKind::kSingle;
  if (flag == "nccl") return CollectiveKind::kNccl;
  return flag == "gloo" || num_nodes > 1 ? CollectiveKind::kGloo
                                         : CollectiveKind::kSharedMemory;
}

}  // namespace lockstep
