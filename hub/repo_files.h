#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

namespace lockstep {

// A hub's repository at one commit.
struct RepoFiles {
  std::string commit;              // IsCommit
  std::vector<std::string> names;  // each IsSafeFileName; others are left out
};

// From a hub's answer, which came from `url`.
absl::StatusOr<RepoFiles> ParseRepoFiles(const std::string& json,
                                         const std::string& url);

}  // namespace lockstep
