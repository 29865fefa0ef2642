#include "worker/group/local_ranks.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <glog/logging.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kOwnBinary[] = "/proc/self/exe";

std::string Ending(int status) {
  if (WIFSIGNALED(status)) {
    return absl::StrCat("was ended by signal ", WTERMSIG(status), " (",
                        strsignal(WTERMSIG(status)), ")");
  }
  return absl::StrCat("ended with exit code ", WEXITSTATUS(status));
}

// In the child, between fork and exec: system calls only.
[[noreturn]] void BecomeRank(pid_t parent, char* const* argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  setpgid(0, 0);
  close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  execv(kOwnBinary, argv);
  _exit(127);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalRanks>> LocalRanks::Start(
    const std::vector<std::string>& arguments,
    const std::vector<Child>& children) {
  std::unique_ptr<LocalRanks> result(new LocalRanks);
  for (const Child& child : children) {
    std::vector<std::string> strings = {
        absl::StrCat("worker-rank-", child.rank)};
    strings.insert(strings.end(), arguments.begin(), arguments.end());
    strings.insert(strings.end(), child.extra_arguments.begin(),
                   child.extra_arguments.end());
    std::vector<char*> argv;
    for (std::string& string : strings) argv.push_back(string.data());
    argv.push_back(nullptr);

    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "cannot start rank ", child.rank, ": ", std::strerror(errno), "."));
    }
    if (pid == 0) BecomeRank(parent, argv.data());
    result->processes_.push_back(
        {.rank = child.rank, .pid = pid, .ending = "", .reaped = false});
  }
  return result;
}

LocalRanks::~LocalRanks() {
  Reap();
  for (const Process& process : processes_) {
    if (process.reaped) continue;
    LOG(WARNING) << "rank " << process.rank << " (process " << process.pid
                 << ") does not leave; killing it.";
    kill(process.pid, SIGKILL);
    waitpid(process.pid, nullptr, 0);
  }
}

absl::Status LocalRanks::Check() {
  Reap();
  std::vector<std::string> ended;
  for (const Process& process : processes_) {
    if (!process.reaped) continue;
    ended.push_back(absl::StrCat("rank ", process.rank, " (process ",
                                 process.pid, ") ", process.ending));
  }
  if (ended.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(absl::StrJoin(ended, "; "), "."));
}

bool LocalRanks::WaitForAll(absl::Duration timeout) {
  const Clock::time_point begin = Clock::now();
  for (const Process& process : processes_) {
    if (process.reaped) continue;
    const int fd = syscall(SYS_pidfd_open, process.pid, 0);
    pollfd ended = {.fd = fd, .events = POLLIN, .revents = 0};
    const absl::Duration left = std::max(
        absl::ZeroDuration(), timeout - absl::FromChrono(Clock::now() - begin));
    poll(&ended, 1, absl::ToInt64Milliseconds(left));
    close(fd);
  }
  Reap();
  return std::all_of(processes_.begin(), processes_.end(),
                     [](const Process& process) { return process.reaped; });
}

void LocalRanks::Reap() {
  for (Process& process : processes_) {
    int status = 0;
    if (process.reaped) continue;
    const pid_t result = waitpid(process.pid, &status, WNOHANG);
    if (result == 0) continue;
    process.reaped = true;
    // Nobody's child any more where SIGCHLD is ignored, as a parent may pass
    // on.
    process.ending =
        result > 0 ? Ending(status) : "ended, nobody knows with what exit code";
    if (result < 0 || status != 0) {
      LOG(WARNING) << "rank " << process.rank << " (process " << process.pid
                   << ") " << process.ending;
    }
  }
}

}  // namespace lockstep
