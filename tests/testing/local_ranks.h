#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "kernels/threads/thread_pool.h"
#include "worker/collectives/collective.h"

namespace lockstep::testing {

// What a rank computes and communicates with; both are LocalRanks'.
struct LocalRank {
  int rank = 0;
  kernels::Ops* ops = nullptr;
  Collective* collective = nullptr;
};

// The ranks of a group as threads of this process, each with kernels of its
// own. Used by one thread; the ranks' own live as long as a Run.
//
//   auto ranks = LocalRanks::Create(/*size=*/4);
//   (*ranks)->Run([&](const LocalRank& rank) {
//     return rank.collective->AllReduceSum(…);
//   });
class LocalRanks {
 public:
  struct Options {
    std::string isa = "auto";
    int threads = 1;  // of a rank
  };

  static absl::StatusOr<std::unique_ptr<LocalRanks>> Create(
      int size, const Options& options);
  static absl::StatusOr<std::unique_ptr<LocalRanks>> Create(int size) {
    return Create(size, Options());
  }

  // Runs `fn` once for each rank, all at the same time. A rank that fails ends
  // the others' collectives; its error is returned.
  absl::Status Run(const std::function<absl::Status(const LocalRank&)>& fn);

  int size() const { return static_cast<int>(ranks_.size()); }
  const LocalRank& rank(int rank) const { return ranks_[rank]; }

 private:
  LocalRanks() = default;

  std::vector<std::unique_ptr<Collective>> collectives_;
  std::vector<std::unique_ptr<kernels::ThreadPool>> pools_;
  std::vector<std::unique_ptr<kernels::Ops>> ops_;
  std::vector<LocalRank> ranks_;
};

}  // namespace lockstep::testing
