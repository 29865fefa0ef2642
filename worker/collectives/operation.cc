#include "worker/collectives/operation.h"

#include <absl/strings/str_cat.h>

namespace lockstep {

uint64_t ReduceOperation(size_t count) { return count * 2; }
uint64_t GatherOperation(size_t count) { return count * 2 + 1; }

std::string OperationName(uint64_t operation) {
  return absl::StrCat(operation % 2 == 0 ? "an all-reduce" : "an all-gather",
                      " of ", operation / 2, " floats");
}

std::string OutOfStep(int rank, uint64_t operation, int other_rank,
                      uint64_t other_operation) {
  return absl::StrCat("the ranks are out of step: rank ", rank, " makes ",
                      OperationName(operation), ", rank ", other_rank, " ",
                      OperationName(other_operation));
}

}  // namespace lockstep
