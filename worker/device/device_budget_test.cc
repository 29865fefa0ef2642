#include "worker/device/device_budget.h"

#include <absl/status/status.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

constexpr DeviceBudget kBudget = {.free_bytes = 950,
                                  .total_bytes = 1000,
                                  .utilization = 0.75,
                                  .weight_bytes = 400,
                                  .workspace_bytes = 60,
                                  .graph_bytes = 40};

TEST(DeviceBudget, LeavesToPagesWhatNobodyElseNeeds) {
  EXPECT_EQ(*BytesForKvPages(kBudget), 750 - 50 - 400 - 60 - 40);
}

TEST(DeviceBudget, ListsTheSizesWhereNothingIsLeft) {
  DeviceBudget budget = kBudget;
  budget.graph_bytes = 240;
  EXPECT_EQ(BytesForKvPages(budget).status(),
            absl::ResourceExhaustedError(
                "No device memory is left for KV pages: of 1000 bytes 750 may "
                "be used, others use 50, the weights take 400, workspaces 60, "
                "graphs 240."));
}

}  // namespace
}  // namespace lockstep
