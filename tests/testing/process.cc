#include "tests/testing/process.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "tests/testing/read_file.h"

namespace lockstep::testing {
namespace {

std::vector<std::string> MergedEnvironment(
    std::map<std::string, std::string> additions) {
  // Ports that others may use; there are tests of two on one.
  additions.emplace("LOCKSTEP_HEALTH_LISTEN", "127.0.0.1:0");
  additions.emplace("LOCKSTEP_METRICS_PORT", "0");
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name(*entry, std::strcspn(*entry, "="));
    if (!additions.contains(name)) result.emplace_back(*entry);
  }
  for (const auto& [name, value] : additions) {
    result.push_back(absl::StrCat(name, "=", value));
  }
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

std::optional<std::string> FindLine(absl::string_view output,
                                    absl::string_view text) {
  while (true) {
    const size_t end = output.find('\n');
    if (end == output.npos) return std::nullopt;
    const absl::string_view line = output.substr(0, end);
    if (absl::StrContains(line, text)) return std::string(line);
    output.remove_prefix(end + 1);
  }
}

// Of /proc/PID/stat, the fields after the name: state, parent, …
std::vector<std::string> StatFields(pid_t pid) {
  const std::string stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  const size_t name_end = stat.rfind(')');
  if (name_end == stat.npos) return {};
  return absl::StrSplit(stat.substr(name_end + 1), ' ', absl::SkipEmpty());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Process>> Process::Start(
    const std::string& binary, const std::vector<std::string>& arguments,
    const std::map<std::string, std::string>& environment) {
  std::vector<std::string> argument_strings = {InRunfiles(binary)};
  argument_strings.insert(argument_strings.end(), arguments.begin(),
                          arguments.end());
  std::vector<std::string> environment_strings = MergedEnvironment(environment);
  const std::vector<char*> argv = Pointers(argument_strings);
  const std::vector<char*> envp = Pointers(environment_strings);

  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) {
    return absl::InternalError(absl::StrCat("pipe: ", std::strerror(errno)));
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    return absl::InternalError(absl::StrCat("fork: ", std::strerror(errno)));
  }
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    dup2(pipe_fds[1], STDOUT_FILENO);
    dup2(pipe_fds[1], STDERR_FILENO);
    execve(argv[0], argv.data(), envp.data());
    dprintf(STDERR_FILENO, "cannot run %s: %s\n", argv[0],
            std::strerror(errno));
    _exit(127);
  }
  close(pipe_fds[1]);
  return std::unique_ptr<Process>(new Process(pid, pipe_fds[0]));
}

Process::Process(pid_t pid, int output_fd)
    : pid_(pid), output_fd_(output_fd), reader_([this] { Read(); }) {
  pthread_setname_np(reader_.native_handle(), "output");
}

Process::~Process() {
  if (exit_code_ < 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  EndReader();
  close(output_fd_);
}

void Process::EndReader() {
  {
    absl::MutexLock lock(&mutex_);
    stop_reading_ = true;
  }
  if (reader_.joinable()) reader_.join();
}

void Process::StopReading() {
  EndReader();
  const std::string pipe = absl::StrCat("/proc/self/fd/", output_fd_);
  const int fd = open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  while (fd >= 0 && write(fd, "\n", 1) > 0) {
  }
  if (fd >= 0) close(fd);
  absl::MutexLock lock(&mutex_);
  output_ended_ = true;  // as far as anyone sees
}

// Ends with the output, or soon after the destructor asks: a grandchild may
// hold the pipe open.
void Process::Read() {
  char buffer[4096];
  while (true) {
    pollfd readable = {.fd = output_fd_, .events = POLLIN, .revents = 0};
    const bool has_data = poll(&readable, 1, /*timeout ms=*/50) > 0;
    const ssize_t size =
        has_data ? read(output_fd_, buffer, sizeof(buffer)) : 0;
    absl::MutexLock lock(&mutex_);
    if (size > 0) output_.append(buffer, size);
    if (has_data && size <= 0) output_ended_ = true;
    if (!has_data) ++idle_polls_;
    if (output_ended_ || (stop_reading_ && !has_data)) return;
  }
}

absl::StatusOr<std::string> Process::WaitForLine(absl::string_view text,
                                                 absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto done = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return output_ended_ || FindLine(output_, text).has_value();
  };
  const bool in_time = mutex_.AwaitWithTimeout(absl::Condition(&done), timeout);
  if (auto line = FindLine(output_, text)) return *std::move(line);
  const std::string what =
      absl::StrCat("no line with \"", text, "\" in:\n", output_);
  if (in_time) return absl::UnavailableError(what);
  return absl::DeadlineExceededError(what);
}

absl::StatusOr<int> Process::WaitForPort(absl::Duration timeout) {
  absl::StatusOr<std::string> line = WaitForLine(": serving ", timeout);
  if (!line.ok()) return line.status();
  int port = 0;
  if (!absl::SimpleAtoi(line->substr(line->rfind(':') + 1), &port)) {
    return absl::InternalError(absl::StrCat("no port in: ", *line));
  }
  return port;
}

void Process::Signal(int signal) {
  if (exit_code_ < 0) kill(pid_, signal);
}

absl::StatusOr<int> Process::WaitForExit(absl::Duration timeout) {
  if (exit_code_ >= 0) return exit_code_;
  if (!WaitUntilGone(pid_, timeout)) {
    return absl::DeadlineExceededError(
        absl::StrCat("process ", pid_, " still runs; its output:\n", output()));
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  AwaitRestOfOutput();
  return exit_code_;
}

// What an ended process wrote lies in the pipe: it is all read at the output's
// end or, where a grandchild holds the pipe open, when nothing more comes.
void Process::AwaitRestOfOutput() {
  absl::MutexLock lock(&mutex_);
  const int idle_polls = idle_polls_;
  const auto done = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return output_ended_ || idle_polls_ > idle_polls + 1;
  };
  mutex_.Await(absl::Condition(&done));
}

std::string Process::output() const {
  absl::MutexLock lock(&mutex_);
  return output_;
}

std::string InRunfiles(const std::string& path) {
  const char* runfiles = std::getenv("TEST_SRCDIR");
  const char* workspace = std::getenv("TEST_WORKSPACE");
  if (path.empty() || path[0] == '/' || runfiles == nullptr ||
      workspace == nullptr) {
    return path;
  }
  return absl::StrCat(runfiles, "/", workspace, "/", path);
}

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/task/", pid, "/children"));
  std::vector<pid_t> result;
  for (pid_t child; file >> child;) result.push_back(child);
  return result;
}

bool IsRunning(pid_t pid) {
  const std::vector<std::string> fields = StatFields(pid);
  return !fields.empty() && fields[0] != "Z" && fields[0] != "X";
}

bool WaitUntilGone(pid_t pid, absl::Duration timeout) {
  const int fd = syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) return errno == ESRCH;  // there is no such process
  pollfd ended = {.fd = fd, .events = POLLIN, .revents = 0};
  const bool in_time = poll(&ended, 1, absl::ToInt64Milliseconds(timeout)) > 0;
  close(fd);
  return in_time;
}

}  // namespace lockstep::testing
