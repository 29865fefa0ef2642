#include "tests/chaos/fleet.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <signal.h>

#include <utility>

#include "common/grpc_server.h"
#include "common/status_macros.h"

namespace lockstep::testing {
namespace {

constexpr absl::Duration kStartsWithin = absl::Seconds(60);

}  // namespace

Fleet::Fleet(Options options)
    : options_(std::move(options)),
      addresses_(options_.groups, "127.0.0.1:0"),
      groups_(options_.groups) {}

absl::Status Fleet::Start() {
  for (int group = 0; group < options_.groups; ++group) {
    LOCKSTEP_RETURN_IF_ERROR(StartGroup(group));
  }
  std::vector<std::string> arguments = {
      absl::StrCat("--model=", options_.model), "--listen=127.0.0.1:0",
      "--http_listen=",
      absl::StrCat("--workers=", absl::StrJoin(addresses_, ","))};
  arguments.insert(arguments.end(), options_.gateway_flags.begin(),
                   options_.gateway_flags.end());
  LOCKSTEP_ASSIGN_OR_RETURN(gateway_,
                            Process::Start(options_.gateway, arguments));
  LOCKSTEP_ASSIGN_OR_RETURN(const int port,
                            gateway_->WaitForPort(kStartsWithin));
  for (const std::string& address : addresses_) {
    LOCKSTEP_RETURN_IF_ERROR(
        gateway_
            ->WaitForLine(absl::StrCat("the worker at ", address, " serves"),
                          kStartsWithin)
            .status());
  }
  channel_ = grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port),
                                       grpc::InsecureChannelCredentials(),
                                       ChannelArguments());
  return absl::OkStatus();
}

absl::Status Fleet::KillAndRestart(int group) {
  groups_[group]->Signal(SIGKILL);
  LOCKSTEP_RETURN_IF_ERROR(groups_[group]->WaitForExit(kStartsWithin).status());
  return StartGroup(group);
}

absl::Status Fleet::StartGroup(int group) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      groups_[group],
      Process::Start(
          options_.worker,
          {absl::StrCat("--model=", options_.model),
           absl::StrCat("--listen=", addresses_[group]),
           "--served_model_name=tiny", "--threads=1", "--num_pages=4096"}));
  LOCKSTEP_ASSIGN_OR_RETURN(const int port,
                            groups_[group]->WaitForPort(kStartsWithin));
  addresses_[group] = absl::StrCat("127.0.0.1:", port);
  return absl::OkStatus();
}

}  // namespace lockstep::testing
