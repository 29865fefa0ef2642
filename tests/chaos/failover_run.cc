#include "tests/chaos/failover_run.h"

#include <absl/base/thread_annotations.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/clock.h>
#include <pthread.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "proto/inference.grpc.pb.h"
#include "tests/chaos/asked.h"

namespace lockstep::testing {
namespace {

// Streams that ask again and again, until they are told to stop or one meets
// what it should not.
class Streams {
 public:
  Streams(const Fleet& fleet, int max_tokens)
      : stub_(v1::Inference::NewStub(fleet.channel())),
        max_tokens_(max_tokens) {}
  ~Streams() { Stop().status().IgnoreError(); }

  absl::Status AskUndisturbed() {
    // The characters in the middle of the greedy answer end another one.
    LOCKSTEP_ASSIGN_OR_RETURN(
        SeenAnswer greedy,
        Ask(stub_.get(), RequestsOfAllKinds(max_tokens_, "-").front()));
    const std::string& text = greedy[0].text;
    requests_ = RequestsOfAllKinds(max_tokens_, MiddleOf(text));
    for (const v1::GenerateRequest& request : requests_) {
      LOCKSTEP_ASSIGN_OR_RETURN(SeenAnswer answer, Ask(stub_.get(), request));
      expected_.push_back(std::move(answer));
    }
    return absl::OkStatus();
  }

  void Start(int number, uint64_t seed) {
    for (int i = 0; i < number; ++i) {
      threads_.emplace_back([this, seed, i] {
        pthread_setname_np(pthread_self(), "stream");
        std::mt19937_64 random(seed + i);
        while (AskOnce(random() % requests_.size())) continue;
      });
    }
  }

  // What one of them met, or how many answers came. Each ends the one it has.
  absl::StatusOr<int> Stop() {
    {
      absl::MutexLock lock(&mutex_);
      is_stopping_ = true;
    }
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return status_;
    return answers_;
  }

  // True at once when one met what it should not.
  bool AwaitFailure(absl::Duration timeout) {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(this, &Streams::HasFailed),
                                   timeout);
  }

 private:
  static std::string MiddleOf(const std::string& text) {
    const auto is_begin = [&](size_t at) { return (text[at] & 0xc0) != 0x80; };
    size_t begin = text.size() / 2;
    while (begin > 0 && !is_begin(begin)) --begin;
    size_t end = std::min(begin + 8, text.size());
    while (end < text.size() && !is_begin(end)) ++end;
    return text.substr(begin, end - begin);
  }

  bool AskOnce(size_t kind) {
    const auto answer = Ask(stub_.get(), requests_[kind]);
    absl::Status status = answer.status();
    if (answer.ok()) {
      const std::string difference = Difference(expected_[kind], *answer);
      if (!difference.empty()) {
        status = absl::InternalError(
            absl::StrCat("request ", kind, " differs: ", difference));
      }
    }
    absl::MutexLock lock(&mutex_);
    status_.Update(status);
    answers_ += status.ok();
    return status_.ok() && !is_stopping_;
  }

  bool HasFailed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !status_.ok();
  }

  const std::unique_ptr<v1::Inference::Stub> stub_;
  const int max_tokens_;
  std::vector<v1::GenerateRequest> requests_;
  std::vector<SeenAnswer> expected_;
  std::vector<std::thread> threads_;  // joined by Stop

  absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  int answers_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

// The sum of "failovers=N" over the gateway's lines.
int CountFailovers(const std::string& output) {
  int sum = 0;
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    const std::vector<absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits("failovers=", 1));
    int number = 0;
    if (parts.size() == 2 &&
        absl::SimpleAtoi(parts[1].substr(0, parts[1].find(' ')), &number)) {
      sum += number;
    }
  }
  return sum;
}

}  // namespace

std::string FailoverReport::ToString() const {
  return absl::StrCat(kills, " kills, ", answers, " answers, ", failovers,
                      " failovers");
}

absl::StatusOr<FailoverReport> RunFailover(const FailoverOptions& options) {
  Fleet::Options processes = options.fleet;
  processes.gateway_flags.push_back("--tool_call_parser=hermes");
  Fleet fleet(processes);
  LOCKSTEP_RETURN_IF_ERROR(fleet.Start());
  Streams streams(fleet, options.max_tokens);
  LOCKSTEP_RETURN_IF_ERROR(streams.AskUndisturbed());
  streams.Start(options.streams, options.seed);
  FailoverReport report;
  std::mt19937_64 random(options.seed);
  const absl::Time end = absl::Now() + options.duration;
  for (absl::Time next = absl::Now() + options.kill_every; next < end;
       next += options.kill_every) {
    if (streams.AwaitFailure(next - absl::Now())) break;
    LOCKSTEP_RETURN_IF_ERROR(
        fleet.KillAndRestart(random() % options.fleet.groups));
    ++report.kills;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(report.answers, streams.Stop());
  report.failovers = CountFailovers(fleet.GatewayOutput());
  return report;
}

}  // namespace lockstep::testing
