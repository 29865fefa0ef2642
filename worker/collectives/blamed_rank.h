#pragma once

#include <absl/status/status.h>

#include <optional>

namespace lockstep {

// `error`, for which `rank` is to blame and not the one that noticed it: it did
// not come, or its values are wrong. What the group says failed first.
//
//   return BlameRank(2, absl::DeadlineExceededError("rank 2 did not come."));
absl::Status BlameRank(int rank, absl::Status error);

// Nothing where nobody else is known to be.
std::optional<int> BlamedRank(const absl::Status& error);

}  // namespace lockstep
