#pragma once

#include <absl/status/statusor.h>

#include <cstdint>

#include "worker/runtime/rank.h"

namespace lockstep::bench {

// How a model came up in this process.
struct LoadResult {
  double load_s = 0;         // until the engine is there
  double first_token_s = 0;  // and has made a token of a prompt of one
  // Of this process, then.
  int64_t resident_bytes = 0;
  int64_t anonymous_bytes = 0;  // not of mapped files
};

// Loads a model, asks for a token and lets it go again.
absl::StatusOr<LoadResult> MeasureLoad(const RankOptions& options);

}  // namespace lockstep::bench
