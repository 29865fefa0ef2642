#include "tests/testing/local_ranks.h"

#include <absl/strings/str_cat.h>
#include <absl/synchronization/mutex.h>
#include <pthread.h>

#include <thread>
#include <utility>

#include "common/status_macros.h"
#include "worker/collectives/shared_memory_collective.h"

namespace lockstep::testing {

absl::StatusOr<std::unique_ptr<LocalRanks>> LocalRanks::Create(
    int size, const Options& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto collectives, MakeLocalGroup(size));
  std::unique_ptr<LocalRanks> ranks(new LocalRanks());
  for (int i = 0; i < size; ++i) {
    ranks->collectives_.push_back(std::move(collectives[i]));
    ranks->pools_.push_back(
        std::make_unique<kernels::ThreadPool>(kernels::ThreadPool::Options{
            .num_threads = options.threads,
            .oversubscribed =
                size * options.threads > std::thread::hardware_concurrency()}));
    LOCKSTEP_ASSIGN_OR_RETURN(
        kernels::Ops ops,
        kernels::Ops::Create(options.isa, ranks->pools_.back().get()));
    ranks->ops_.push_back(std::make_unique<kernels::Ops>(std::move(ops)));
    ranks->ranks_.push_back({.rank = i,
                             .ops = ranks->ops_.back().get(),
                             .collective = ranks->collectives_.back().get()});
  }
  return ranks;
}

absl::Status LocalRanks::Run(
    const std::function<absl::Status(const LocalRank&)>& fn) {
  absl::Mutex mutex;
  absl::Status first_error;
  std::vector<std::thread> threads;
  for (const LocalRank& rank : ranks_) {
    threads.emplace_back([&] {
      const absl::Status status = fn(rank);
      if (status.ok()) return;
      absl::MutexLock lock(&mutex);
      if (first_error.ok()) first_error = status;
      rank.collective->Abort(status.message());
    });
    pthread_setname_np(threads.back().native_handle(),
                       absl::StrCat("rank-", rank.rank).c_str());
  }
  for (std::thread& thread : threads) thread.join();
  return first_error;
}

}  // namespace lockstep::testing
