// A rank of a worker group: flags → model → group → leader or follower.

#include <absl/strings/str_cat.h>
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/health/health_board.h"
#include "common/health/health_server.h"
#include "common/metrics/metric_board.h"
#include "common/metrics/program_metrics.h"
#include "common/program/program_flags.h"
#include "common/program/version.h"
#include "common/status_macros.h"
#include "common/termination_signals.h"
#include "hub/fetch_model.h"
#include "hub/hub_settings.h"
#include "proto/group.pb.h"
#include "proto/worker.grpc.pb.h"
#include "worker/collectives/collective_kind.h"
#include "worker/follower.h"
#include "worker/group/address.h"
#include "worker/group/group_failure.h"
#include "worker/group/local_ranks.h"
#include "worker/group/rendezvous_follower.h"
#include "worker/group/rendezvous_leader.h"
#include "worker/leader.h"
#include "worker/options.h"
#include "worker/runtime/rank.h"
#include "worker/worker_metrics.h"

namespace lockstep {
namespace {

constexpr absl::Duration kReportEvery = absl::Seconds(5);
// Within it local ranks leave by themselves, once this one is done.
constexpr absl::Duration kLocalRanksTimeout = absl::Milliseconds(1500);

using Arguments = std::vector<std::string>;

// Once a host, before its ranks meet others.
absl::StatusOr<std::string> ModelPath(const std::string& model,
                                      HealthBoard& health) {
  return FetchModel(model, HubSettingsFromEnvironment(),
                    {.tell = [&health](const std::string& progress) {
                      health.Enter(Phase::kLoading, progress);
                    }});
}

// The ranks after this one on its host. `leader_address` has the port in use.
absl::StatusOr<std::unique_ptr<LocalRanks>> StartLocalRanks(
    const WorkerOptions& options, const Arguments& arguments,
    const std::string& leader_address) {
  std::vector<LocalRanks::Child> children;
  for (int i = 1; options.starts_local_ranks && i < options.rank.local_ranks;
       ++i) {
    const int rank = options.rank.rank + i;
    children.push_back(
        {.rank = rank,
         .extra_arguments = {
             absl::StrCat("--model=", options.rank.model),
             absl::StrCat("--rank=", rank), absl::StrCat("--local_index=", i),
             absl::StrCat("--local_ranks=", options.rank.local_ranks),
             absl::StrCat("--leader_address=", leader_address)}});
  }
  return LocalRanks::Start(arguments, children);
}

// A collective that breaks between two steps ends the group.
RankOptions RankOptionsOf(const WorkerOptions& options, GroupFailure* failure) {
  RankOptions rank = options.rank;
  rank.group_timeout = options.group_timeout;
  rank.collective_failed = [failure,
                            number = rank.rank](const absl::Status& status) {
    failure->ReportError(number, v1::COLLECTIVE_FAILED, status);
  };
  return rank;
}

// Other hosts reach this one as the leader does, and the leader by its address.
absl::Status OpenCollective(const WorkerOptions& options, Rank& rank) {
  std::string host;
  if (options.rank.collective == CollectiveKind::kGloo) {
    LOCKSTEP_RETURN_IF_ERROR(WaitUntilKnown(
        options.leader_address, "leader_address", options.group_timeout));
    LOCKSTEP_ASSIGN_OR_RETURN(
        host, HostTowards(options.leader_address, "leader_address"));
  }
  return rank.OpenCollective(host);
}

absl::StatusOr<Membership> Gather(RendezvousLeader& rendezvous,
                                  const WorkerOptions& options, Rank& rank,
                                  LocalRanks& local_ranks) {
  LOCKSTEP_ASSIGN_OR_RETURN(const v1::Hello hello, rank.hello());
  std::random_device random;
  RendezvousLeader::Options gather;
  gather.timeout = options.group_timeout;
  gather.report_every = kReportEvery;
  gather.epoch = uint64_t{random()} << 32 | random();
  gather.check = [&local_ranks] { return local_ranks.Check(); };
  return rendezvous.Gather(hello, gather);
}

template <typename Role>
absl::Status RunAs(const WorkerOptions& options, Rank& rank,
                   Membership membership, LocalRanks& local_ranks,
                   GroupFailure& failure, HealthBoard& health,
                   MetricBoard& metrics) {
  LOCKSTEP_RETURN_IF_ERROR(rank.Agree(membership.num_pages));
  absl::Status status;
  {
    Role role(options, &rank, std::move(membership), &failure, &health,
              &metrics);
    status = role.Run();
  }
  local_ranks.WaitForAll(kLocalRanksTimeout);
  return status;
}

absl::Status RunLeader(const WorkerOptions& options, const Arguments& arguments,
                       HealthBoard& health, MetricBoard& metrics) {
  // Outlives all that may take its time once the group has failed.
  GroupFailure failure{GroupFailure::Options()};
  LOCKSTEP_ASSIGN_OR_RETURN(auto rank,
                            Rank::Open(RankOptionsOf(options, &failure)));
  LOCKSTEP_RETURN_IF_ERROR(CheckCanListen(options.listen, "listen"));
  LOCKSTEP_RETURN_IF_ERROR(WaitUntilKnown(
      options.leader_address, "leader_address", options.group_timeout));
  LOCKSTEP_ASSIGN_OR_RETURN(auto rendezvous,
                            RendezvousLeader::Listen(options.leader_address));
  const std::string host(options.leader_address, 0,
                         options.leader_address.rfind(':'));
  const std::string address = absl::StrCat(host, ":", rendezvous->port());
  LOG(INFO) << "the group forms at " << address;
  health.Enter(Phase::kForming,
               absl::StrCat(options.rank.size, " ranks at ", address));
  LOCKSTEP_ASSIGN_OR_RETURN(auto local_ranks,
                            StartLocalRanks(options, arguments, address));
  LOCKSTEP_RETURN_IF_ERROR(rank->StartKernels());
  LOCKSTEP_RETURN_IF_ERROR(OpenCollective(options, *rank));
  LOCKSTEP_ASSIGN_OR_RETURN(Membership membership,
                            Gather(*rendezvous, options, *rank, *local_ranks));
  return RunAs<Leader>(options, *rank, std::move(membership), *local_ranks,
                       failure, health, metrics);
}

absl::Status RunFollower(const WorkerOptions& options,
                         const Arguments& arguments, HealthBoard& health,
                         MetricBoard& metrics) {
  // As RunLeader's.
  GroupFailure failure{GroupFailure::Options()};
  LOCKSTEP_ASSIGN_OR_RETURN(auto rank,
                            Rank::Open(RankOptionsOf(options, &failure)));
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto local_ranks,
      StartLocalRanks(options, arguments, options.leader_address));
  LOCKSTEP_RETURN_IF_ERROR(rank->StartKernels());
  LOCKSTEP_RETURN_IF_ERROR(OpenCollective(options, *rank));
  LOCKSTEP_ASSIGN_OR_RETURN(const v1::Hello hello, rank->hello());
  health.Enter(Phase::kForming,
               absl::StrCat("the leader at ", options.leader_address));
  LOCKSTEP_ASSIGN_OR_RETURN(
      Membership membership,
      JoinGroup(options.leader_address, hello,
                {.timeout = options.group_timeout,
                 .report_every = kReportEvery,
                 .check = [&] { return local_ranks->Check(); }}));
  return RunAs<Follower>(options, *rank, std::move(membership), *local_ranks,
                         failure, health, metrics);
}

absl::Status Run(int argc, char** argv) {
  const Arguments arguments(argv + 1, argv + argc);
  LOCKSTEP_RETURN_IF_ERROR(ParseProgramFlags(argc, argv));
  LOCKSTEP_ASSIGN_OR_RETURN(WorkerOptions options, OptionsFromFlags());
  LOG(INFO) << options.ToString();
  // Until a leader serves, or a follower has joined.
  ExitAtTermination("worker");
  HealthBoard health(absl::StrCat("rank ", options.rank.rank, ": "));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto health_server,
      StartHealthServer(options.health_listen, &health,
                        {v1::Worker::service_full_name()}));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto metrics,
      ProgramMetrics::Start({.program = "worker",
                             .version = kVersion,
                             .table = WorkerMetrics(),
                             .health = &health,
                             .port = options.metrics_port}));
  LOCKSTEP_ASSIGN_OR_RETURN(options.rank.model,
                            ModelPath(options.rank.model, health));
  const absl::Status status =
      options.is_leader()
          ? RunLeader(options, arguments, health, *metrics->board())
          : RunFollower(options, arguments, health, *metrics->board());
  if (!status.ok()) health.Enter(Phase::kFailed, status.message());
  return status;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  gflags::SetUsageMessage(
      "worker --model PATH [--listen HOST:PORT] [--tensor_parallel_size N]");
  const absl::Status status = lockstep::Run(argc, argv);
  if (status.ok()) return 0;
  const std::string message(status.message());
  std::fprintf(stderr, "worker: %s\n", message.c_str());
  return 1;
}
