#include "worker/device/device_budget.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

namespace lockstep {

absl::StatusOr<int64_t> BytesForKvPages(const DeviceBudget& budget) {
  const auto usable =
      static_cast<int64_t>(budget.total_bytes * budget.utilization);
  const int64_t others = budget.total_bytes - budget.free_bytes;
  const int64_t own =
      budget.weight_bytes + budget.workspace_bytes + budget.graph_bytes;
  const int64_t left = usable - others - own;
  if (left > 0) return left;
  return absl::ResourceExhaustedError(absl::StrCat(
      "No device memory is left for KV pages: of ", budget.total_bytes,
      " bytes ", usable, " may be used, others use ", others,
      ", the weights take ", budget.weight_bytes, ", workspaces ",
      budget.workspace_bytes, ", graphs ", budget.graph_bytes, "."));
}

}  // namespace lockstep
