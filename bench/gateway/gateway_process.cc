#include "bench/gateway/gateway_process.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace lockstep::bench {
namespace {

// As exec wants them.
std::vector<char*> ArgumentsOf(const std::string& binary,
                               const std::vector<std::string>& flags) {
  std::vector<char*> arguments = {const_cast<char*>(binary.c_str())};
  for (const std::string& flag : flags) {
    arguments.push_back(const_cast<char*>(flag.c_str()));
  }
  arguments.push_back(nullptr);
  return arguments;
}

// In the child, where nothing may be allocated: others of our threads may have
// held locks.
[[noreturn]] void Become(const std::vector<char*>& arguments, int output) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(output, STDOUT_FILENO);
  execv(arguments[0], arguments.data());
  _exit(127);
}

// The address that a line of its output ends with.
std::string AddressIn(absl::string_view line) {
  return std::string(line.substr(line.rfind(' ') + 1));
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

absl::StatusOr<std::unique_ptr<GatewayProcess>> GatewayProcess::Start(
    const std::string& binary, std::vector<std::string> flags) {
  for (const char* flag : {"--listen", "--http_listen"}) {
    flags.push_back(absl::StrCat(flag, "=127.0.0.1:0"));
  }
  flags.push_back("--health_listen=");
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::InternalError("there is no pipe for the gateway's output.");
  }
  const std::vector<char*> arguments = ArgumentsOf(binary, flags);
  const pid_t pid = fork();
  if (pid == 0) Become(arguments, ends[1]);
  close(ends[1]);
  std::unique_ptr<GatewayProcess> gateway(new GatewayProcess(pid));
  FILE* const output = fdopen(ends[0], "r");
  char line[512];
  while (gateway->grpc_address_.empty() &&
         std::fgets(line, sizeof(line), output) != nullptr) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (absl::StartsWith(text, "gateway: HTTP on ")) {
      gateway->http_address_ = AddressIn(text);
    } else if (absl::StartsWith(text, "gateway: serving ")) {
      gateway->grpc_address_ = AddressIn(text);
    }
  }
  std::fclose(output);
  if (!gateway->grpc_address_.empty()) return gateway;
  return absl::UnavailableError(
      absl::StrCat("the gateway ", binary, " does not start."));
}

GatewayProcess::~GatewayProcess() {
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}

double GatewayProcess::CpuSeconds() const {
  const std::string stat = ReadFile(absl::StrCat("/proc/", pid_, "/stat"));
  // proc(5): behind the name, utime is the 12th field and stime the 13th.
  const std::vector<std::string> fields =
      absl::StrSplit(stat.substr(stat.rfind(')') + 2), ' ');
  int64_t user = 0, kernel = 0;
  if (fields.size() < 13 || !absl::SimpleAtoi(fields[11], &user) ||
      !absl::SimpleAtoi(fields[12], &kernel)) {
    return 0;
  }
  return static_cast<double>(user + kernel) / sysconf(_SC_CLK_TCK);
}

double GatewayProcess::StatusMib(const std::string& key) const {
  const std::string status = ReadFile(absl::StrCat("/proc/", pid_, "/status"));
  const size_t at = status.find("\n" + key + ":");
  if (at == status.npos) return 0;
  // proc(5): "VmRSS:     1234 kB".
  return std::strtod(status.c_str() + at + key.size() + 2, nullptr) / 1024;
}

}  // namespace lockstep::bench
