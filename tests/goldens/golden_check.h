#pragma once

#include <absl/status/statusor.h>

#include <iosfwd>
#include <string>
#include <vector>

#include "worker/runtime/numerics.h"

namespace lockstep::goldens {

struct GoldenCheckOptions {
  std::string folder;
  // Where the model of a JSON file is: its folder, or itself. Without it such a
  // case is skipped.
  std::string models;
  // Empty: 1, 2, 3, 4, 8 and those that divide the model's heads.
  std::vector<int> tensor_parallel_sizes;
  Numerics numerics;
};

struct GoldenCounts {
  int passed = 0;
  int failed = 0;
  int skipped = 0;
};

// Runs the goldens of a folder (see FindGoldens) through scheduler and engine,
// each at every tensor-parallel size, a mixture of experts also with whole ones
// on each rank, and writes a line for each to `out`; one more says whether the
// groups that should give the same bits do. What is not
// supported is skipped, with the refusal. An error is about the golden files
// themselves.
absl::StatusOr<GoldenCounts> CheckGoldens(const GoldenCheckOptions& options,
                                          std::ostream& out);

}  // namespace lockstep::goldens
