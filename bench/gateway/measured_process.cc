#include "bench/gateway/measured_process.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace lockstep::bench {
namespace {

// As exec wants them.
std::vector<char*> ArgumentsOf(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  return arguments;
}

// In the child, where nothing may be allocated: others of our threads may have
// held locks.
[[noreturn]] void Become(const std::vector<char*>& arguments, int output) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(output < 0 ? STDERR_FILENO : output, STDOUT_FILENO);
  execv(arguments[0], arguments.data());
  _exit(127);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

absl::StatusOr<std::unique_ptr<MeasuredProcess>> MeasuredProcess::Start(
    const std::vector<std::string>& command, int output) {
  const std::vector<char*> arguments = ArgumentsOf(command);
  const pid_t pid = fork();
  if (pid == 0) Become(arguments, output);
  if (output >= 0) close(output);
  if (pid > 0)
    return std::unique_ptr<MeasuredProcess>(new MeasuredProcess(pid));
  return absl::ResourceExhaustedError(
      absl::StrCat("there is no process for ", command[0], "."));
}

MeasuredProcess::~MeasuredProcess() {
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}

double MeasuredProcess::CpuSeconds() const {
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

double MeasuredProcess::StatusMib(const std::string& key) const {
  const std::string status = ReadFile(absl::StrCat("/proc/", pid_, "/status"));
  const size_t at = status.find("\n" + key + ":");
  if (at == status.npos) return 0;
  // proc(5): "VmRSS:     1234 kB".
  return std::strtod(status.c_str() + at + key.size() + 2, nullptr) / 1024;
}

}  // namespace lockstep::bench
