#include "bench/gateway/gateway_process.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <absl/time/clock.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

#include "bench/gateway/sent_times.h"
#include "bench/gateway/streams.h"
#include "common/status_macros.h"

namespace lockstep::bench {
namespace {

// A program that loads a tokenizer, on a machine that does other things too.
constexpr absl::Duration kRivalStartsWithin = absl::Minutes(2);
constexpr absl::Duration kAskAgainAfter = absl::Milliseconds(200);

// The address that a line of its output ends with.
std::string AddressIn(absl::string_view line) {
  return std::string(line.substr(line.rfind(' ') + 1));
}

// That nobody listens on; 0 if there is none.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const bytes = reinterpret_cast<sockaddr*>(&address);
  const bool has_port =
      bind(fd, bytes, size) == 0 && getsockname(fd, bytes, &size) == 0;
  close(fd);
  return has_port ? ntohs(address.sin_port) : 0;
}

}  // namespace

absl::StatusOr<GatewayProcess> GatewayProcess::Start(
    const std::string& binary, std::vector<std::string> flags) {
  flags.insert(flags.begin(),
               {binary, "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0",
                "--health_listen="});
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::InternalError("there is no pipe for the gateway's output.");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(auto process,
                            MeasuredProcess::Start(flags, ends[1]));
  GatewayProcess gateway(std::move(process));
  FILE* const output = fdopen(ends[0], "r");
  char line[512];
  while (gateway.grpc_address_.empty() &&
         std::fgets(line, sizeof(line), output) != nullptr) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (absl::StartsWith(text, "gateway: HTTP on ")) {
      gateway.http_address_ = AddressIn(text);
    } else if (absl::StartsWith(text, "gateway: serving ")) {
      gateway.grpc_address_ = AddressIn(text);
    }
  }
  std::fclose(output);
  if (!gateway.grpc_address_.empty()) return gateway;
  return absl::UnavailableError(
      absl::StrCat("the gateway ", binary, " does not start."));
}

absl::StatusOr<GatewayProcess> GatewayProcess::StartRival(
    std::string command, const std::string& engine) {
  const int port = FreePort();
  absl::StrReplaceAll({{"{engine}", engine}, {"{port}", absl::StrCat(port)}},
                      &command);
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto process,
      MeasuredProcess::Start({"/bin/sh", "-c", "exec " + command}));
  GatewayProcess gateway(std::move(process));
  gateway.http_address_ = absl::StrCat("127.0.0.1:", port);
  const SentTimes unused(/*streams=*/1, /*tokens=*/1);
  const absl::Time give_up = absl::Now() + kRivalStartsWithin;
  absl::Status status;
  do {
    status = StreamOverHttp(
                 {.target = gateway.http_address_, .streams = 1, .tokens = 1},
                 unused)
                 .status();
    if (status.ok()) return gateway;
    absl::SleepFor(kAskAgainAfter);
  } while (absl::Now() < give_up);
  return absl::UnavailableError(
      absl::StrCat("the rival does not answer: ", status.message()));
}

}  // namespace lockstep::bench
