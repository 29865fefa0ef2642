#include "tests/chaos/soak.h"

#include <absl/base/thread_annotations.h>
#include <absl/strings/str_cat.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/clock.h>
#include <pthread.h>
#include <signal.h>

#include <random>
#include <thread>
#include <vector>

#include "common/status_macros.h"
#include "tests/chaos/leftovers.h"
#include "tests/chaos/ranks.h"

namespace lockstep::testing {
namespace {

constexpr absl::Duration kEndsWithin = absl::Seconds(60);
constexpr absl::Duration kStall = absl::Milliseconds(500);
constexpr absl::Duration kLeavesWithin = absl::Seconds(20);
constexpr uint32_t kVocabulary = 500;

constexpr const char* kEndNames[] = {"summaries", "unavailable", "cancelled",
                                     "deadlines", "refused"};

class Traffic {
 public:
  Traffic(const Ranks& ranks, uint64_t seed) : ranks_(ranks), seed_(seed) {}

  // What all clients met, or the first thing that may not be.
  absl::StatusOr<std::array<int64_t, Client::kNumEnds>> Run(
      int clients, absl::Duration duration) {
    const absl::Time end = absl::Now() + duration;
    std::vector<std::thread> threads;
    for (int i = 0; i < clients; ++i) {
      threads.emplace_back([this, i, end] {
        pthread_setname_np(pthread_self(), "traffic");
        std::mt19937_64 random(seed_ + i);
        while (absl::Now() < end && Send(random)) {
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return status_;
    return ends_;
  }

 private:
  static Client::Options Draw(std::mt19937_64& random) {
    const auto one_in = [&](int n) { return random() % n == 0; };
    Client::Options options;
    v1::WorkerGenerateRequest& request = options.request;
    const int prompt_tokens = 1 + random() % (one_in(8) ? 600 : 40);
    const bool is_shared = one_in(3);
    for (int i = 0; i < prompt_tokens; ++i) {
      request.add_prompt_token_ids(3 +
                                   (is_shared ? i : random()) % kVocabulary);
    }
    request.set_priority(static_cast<int>(random() % 5) - 2);
    request.set_bypass_prefix_cache(one_in(10));
    v1::SamplingParams& sampling = *request.mutable_sampling();
    sampling.set_max_tokens(1 + random() % (one_in(8) ? 400 : 30));
    sampling.set_ignore_eos(one_in(2));
    if (one_in(3)) sampling.set_temperature(0);
    if (one_in(6)) sampling.set_n(3);
    if (one_in(6)) sampling.set_logprobs(5);
    if (one_in(8)) options.cancel_after_tokens = 1 + random() % 20;
    if (one_in(8)) options.deadline = absl::Milliseconds(1 + random() % 300);
    options.stalls = one_in(12);
    return options;
  }

  // False when it was the last: something is wrong.
  bool Send(std::mt19937_64& random) {
    const Client::Options options = Draw(random);
    Client client(ranks_.channel(), options);
    if (options.stalls && !client.WaitForEnd(kStall)) client.ReadOn();
    absl::Status status =
        client.WaitForEnd(kEndsWithin)
            ? client.CheckEnd()
            : absl::DeadlineExceededError("a call does not end.");
    if (status.ok() && client.end() == Client::End::kUnavailable) {
      status = absl::UnavailableError("the group has failed.");
    }
    absl::MutexLock lock(&mutex_);
    status_.Update(status);
    if (status.ok()) ++ends_[static_cast<int>(client.end())];
    return status_.ok();
  }

  const Ranks& ranks_;
  const uint64_t seed_;
  absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::array<int64_t, Client::kNumEnds> ends_ ABSL_GUARDED_BY(mutex_) = {};
};

absl::StatusOr<SoakReport> SoakRanks(const SoakOptions& options, Ranks& ranks) {
  const Leftovers leftovers;
  LOCKSTEP_RETURN_IF_ERROR(ranks.StartLeader());
  for (int rank = 1; rank < options.size; ++rank) {
    LOCKSTEP_RETURN_IF_ERROR(ranks.StartFollower(rank, ranks.leader_address()));
  }
  LOCKSTEP_RETURN_IF_ERROR(ranks.AwaitServing());

  SoakReport report;
  LOCKSTEP_RETURN_IF_ERROR(Traffic(ranks, options.seed)
                               .Run(options.clients, options.warm_up)
                               .status());
  LOCKSTEP_ASSIGN_OR_RETURN(report.before, ReadVitalSigns(ranks));
  LOCKSTEP_ASSIGN_OR_RETURN(report.ends,
                            Traffic(ranks, options.seed + options.clients)
                                .Run(options.clients, options.duration));
  LOCKSTEP_ASSIGN_OR_RETURN(report.after, ReadVitalSigns(ranks));
  LOCKSTEP_RETURN_IF_ERROR(CheckNothingGrew(report.before, report.after));

  ranks.rank(0).Signal(SIGTERM);
  for (int rank = 0; rank < options.size; ++rank) {
    LOCKSTEP_ASSIGN_OR_RETURN(const int code,
                              ranks.rank(rank).WaitForExit(kLeavesWithin));
    if (code == 0) continue;
    return absl::InternalError(
        absl::StrCat("rank ", rank, " left with code ", code, "."));
  }
  LOCKSTEP_RETURN_IF_ERROR(leftovers.Check(ranks));
  return report;
}

}  // namespace

std::string SoakReport::ToString() const {
  std::string text = "calls:";
  for (size_t i = 0; i < ends.size(); ++i) {
    absl::StrAppend(&text, " ", ends[i], " ", kEndNames[i]);
  }
  return absl::StrCat(text, "\nbefore: ", before.ToString(),
                      "\nafter:  ", after.ToString());
}

absl::StatusOr<SoakReport> Soak(const SoakOptions& options) {
  // Few pages: all of them have been used once when the warm-up ends, and then
  // some sequences are preempted.
  Ranks ranks({.worker = options.worker,
               .model = options.model,
               .size = options.size,
               .flags = {"--num_pages=128", "--max_step_tokens=64",
                         "--max_sequences=16", "--max_context=2000"},
               .launcher = {}});
  absl::StatusOr<SoakReport> report = SoakRanks(options, ranks);
  if (report.ok()) return report;
  return absl::Status(
      report.status().code(),
      absl::StrCat(report.status().message(), "\n", ranks.Output()));
}

}  // namespace lockstep::testing
