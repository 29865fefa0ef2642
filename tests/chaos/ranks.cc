#include "tests/chaos/ranks.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/time/clock.h>

#include <csignal>
#include <thread>
#include <utility>

#include "common/grpc_server.h"
#include "common/status_macros.h"

namespace lockstep::testing {
namespace {

constexpr absl::Duration kStartLimit = absl::Seconds(60);

}  // namespace

Ranks::Ranks(Options options)
    : options_(std::move(options)), processes_(options_.size) {}

absl::Status Ranks::Start(int rank, const std::string& leader_address) {
  std::vector<std::string> command = options_.launcher;
  command.push_back(options_.worker);
  command.insert(
      command.end(),
      {absl::StrCat("--model=", options_.model),
       absl::StrCat("--tensor_parallel_size=", options_.size),
       absl::StrCat("--rank=", rank),
       absl::StrCat("--local_ranks=", rank == 0 && options_.has_child ? 2 : 1),
       absl::StrCat("--leader_address=", leader_address),
       "--served_model_name=tiny", "--listen=127.0.0.1:0", "--threads=1"});
  command.insert(command.end(), options_.flags.begin(), options_.flags.end());
  LOCKSTEP_ASSIGN_OR_RETURN(
      processes_[rank],
      Process::Start(command[0], {command.begin() + 1, command.end()}));
  return absl::OkStatus();
}

absl::Status Ranks::StartLeader() {
  LOCKSTEP_RETURN_IF_ERROR(Start(0, "127.0.0.1:0"));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::string line,
      processes_[0]->WaitForLine("the group forms at ", kStartLimit));
  leader_address_ = line.substr(line.rfind(' ') + 1);
  if (!options_.has_child) return absl::OkStatus();
  // The leader starts it once it listens.
  const absl::Time end = absl::Now() + kStartLimit;
  while (absl::Now() < end) {
    const std::vector<pid_t> children = ChildrenOf(processes_[0]->pid());
    if (!children.empty()) child_ = children[0];
    if (child_ > 0) return absl::OkStatus();
    std::this_thread::yield();
  }
  return absl::DeadlineExceededError("the leader has started no rank.");
}

absl::Status Ranks::StartFollower(int rank, const std::string& leader_address) {
  return is_child(rank) ? absl::OkStatus() : Start(rank, leader_address);
}

pid_t Ranks::pid(int rank) const {
  if (is_child(rank)) return child_;
  return processes_[rank] == nullptr ? 0 : processes_[rank]->pid();
}

void Ranks::Signal(int rank, int signal) { kill(pid(rank), signal); }

absl::StatusOr<std::optional<int>> Ranks::WaitForExit(int rank,
                                                      absl::Duration timeout) {
  if (!is_child(rank)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const int code,
                              processes_[rank]->WaitForExit(timeout));
    return std::optional<int>(code);
  }
  if (WaitUntilGone(child_, timeout)) return std::optional<int>();
  return absl::DeadlineExceededError(
      absl::StrCat("process ", child_, " still runs."));
}

absl::Status Ranks::AwaitLine(int rank, const std::string& text) {
  if (!is_child(rank)) {
    return processes_[rank]->WaitForLine(text, kStartLimit).status();
  }
  const std::string line = absl::StrCat("rank ", rank, ": ", text);
  return processes_[0]->WaitForLine(line, kStartLimit).status();
}

absl::Status Ranks::AwaitServing() {
  LOCKSTEP_ASSIGN_OR_RETURN(port_, processes_[0]->WaitForPort(kStartLimit));
  channel_ = grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_),
                                       grpc::InsecureChannelCredentials(),
                                       ChannelArguments());
  return absl::OkStatus();
}

int Ranks::leader_port() const {
  int port = 0;
  const size_t colon = leader_address_.rfind(':');
  if (!absl::SimpleAtoi(leader_address_.substr(colon + 1), &port)) return 0;
  return port;
}

std::string Ranks::Output() const {
  std::string output;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (processes_[rank] == nullptr) continue;
    absl::StrAppend(&output, "--- rank ", rank, "\n");
    for (const auto line : absl::StrSplit(processes_[rank]->output(), '\n')) {
      if (absl::StrContains(line, " digest ")) continue;
      absl::StrAppend(&output, line, "\n");
    }
  }
  return output;
}

}  // namespace lockstep::testing
