// How long an all-reduce takes, beside the least it can take over shared memory
// in the same run; docs/benchmarks.md.
//
//   collectives_bench --collective=shared_memory --bytes=8192
//
// Two ranks, each a thread on a core of its own. In every round the bare
// exchange and the collective run one after the other, `calls` times each, and
// what counts is the median of the rounds.

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <gflags/gflags.h>
#include <glog/logging.h>
#include <pthread.h>
#include <sched.h>

#include <barrier>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/collectives/flag_exchange.h"
#include "bench/spread.h"
#include "bench/text_table.h"
#include "common/environment_flags.h"
#include "common/flag_check.h"
#include "common/status_macros.h"
#include "worker/collectives/collective.h"
#include "worker/collectives/collective_kind.h"
#include "worker/collectives/gloo_collective.h"
#include "worker/collectives/shared_memory_collective.h"
#include "worker/runtime/host_limits.h"

DEFINE_string(collective, "shared_memory", "shared_memory, or gloo on lo.");
DEFINE_int32(bytes, 8192, "Size of the tensor; floats of 4 bytes.");
DEFINE_int32(calls, 1000, "Calls of a round.");
DEFINE_int32(rounds, 51, "Rounds, of which the median counts.");

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Group = std::vector<std::unique_ptr<Collective>>;

constexpr int kRanks = 2;

absl::StatusOr<Group> MakeSharedMemory() {
  LOCKSTEP_ASSIGN_OR_RETURN(auto ranks, MakeLocalGroup(kRanks));
  Group group;
  for (auto& rank : ranks) group.push_back(std::move(rank));
  return group;
}

absl::StatusOr<Group> MakeGloo() {
  constexpr char kHost[] = "127.0.0.1";
  LOCKSTEP_ASSIGN_OR_RETURN(auto first, GlooCollective::Listen(kHost, 0, 2));
  LOCKSTEP_ASSIGN_OR_RETURN(auto second, GlooCollective::Listen(kHost, 1, 2));
  absl::Status connected;
  std::thread connecting([&] {
    connected = second->Connect({first->addresses()[1], ""});
  });
  const absl::Status own = first->Connect({"", second->addresses()[0]});
  connecting.join();
  LOCKSTEP_RETURN_IF_ERROR(own);
  LOCKSTEP_RETURN_IF_ERROR(connected);
  Group group;
  group.push_back(std::move(first));
  group.push_back(std::move(second));
  return group;
}

void Pin(int rank) {
  const std::vector<int> cores = UsableCores();
  if (cores.size() < kRanks) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cores[rank], &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

double MicrosecondsOfOne(const std::function<void()>& call) {
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < FLAGS_calls; ++i) call();
  return std::chrono::duration<double, std::micro>(Clock::now() - begin)
             .count() /
         FLAGS_calls;
}

struct Times {
  std::vector<double> bare, collective, ratio;  // us, us; by round
};

// What rank 0 measures.
Times Measure(Group& group) {
  const size_t count = FLAGS_bytes / sizeof(float);
  FlagExchange bare(count);
  std::barrier together(kRanks);
  Times times;
  const auto run = [&](int rank) {
    Pin(rank);
    std::vector<float> data(count, 0.0f);
    for (int round = 0; round <= FLAGS_rounds; ++round) {
      together.arrive_and_wait();
      const double of_bare = MicrosecondsOfOne(
          [&] { bare.AllReduceSum(rank, absl::MakeSpan(data)); });
      const double of_collective = MicrosecondsOfOne([&] {
        const absl::Status status =
            group[rank]->AllReduceSum(absl::MakeSpan(data));
        CHECK(status.ok()) << status;
      });
      // The first round warms up.
      if (rank > 0 || round == 0) continue;
      times.bare.push_back(of_bare);
      times.collective.push_back(of_collective);
      times.ratio.push_back(of_collective / of_bare);
    }
  };
  std::thread second(run, 1);
  run(0);
  second.join();
  return times;
}

std::vector<std::string> Row(const std::string& name,
                             const std::vector<double>& values) {
  const Spread spread = SpreadOf(values);
  return {name, absl::StrFormat("%.2f", spread.median),
          absl::StrFormat("%.2f", spread.least),
          absl::StrFormat("%.2f", Percentile(values, 0.9))};
}

absl::Status Run(int argc, char** argv) {
  LOCKSTEP_RETURN_IF_ERROR(ParseFlags(argc, argv));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("bytes", FLAGS_bytes, 4, 1 << 30));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("calls", FLAGS_calls, 1, 1 << 20));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("rounds", FLAGS_rounds, 1, 1 << 20));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const CollectiveKind kind,
      ParseCollective(FLAGS_collective, kRanks, /*num_nodes=*/1));
  if (kind == CollectiveKind::kNccl) {
    return absl::InvalidArgumentError(
        "--collective is nccl, which is between GPUs; it must be "
        "shared_memory or gloo.");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(Group group, kind == CollectiveKind::kGloo
                                             ? MakeGloo()
                                             : MakeSharedMemory());
  const Times times = Measure(group);
  TextTable table;
  table.Add({absl::StrCat(FLAGS_bytes, " bytes"), "median", "least", "p90"});
  table.Add(Row("bare exchange, us", times.bare));
  table.Add(Row(absl::StrCat(CollectiveName(kind), ", us"), times.collective));
  table.Add(Row("ratio", times.ratio));
  std::fputs(table.ToText().c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  const absl::Status status = lockstep::bench::Run(argc, argv);
  if (status.ok()) return 0;
  const std::string message(status.message());
  std::fprintf(stderr, "collectives_bench: %s\n", message.c_str());
  return 1;
}
