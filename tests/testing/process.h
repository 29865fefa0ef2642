#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::testing {

// A program under test. Its standard output and error are read as it runs; it
// dies with the test, and the destructor kills and reaps it.
//
//   auto worker = Process::Start("worker/worker", {"--listen=127.0.0.1:0"});
//   const auto port = (*worker)->WaitForPort(absl::Seconds(60));
//   (*worker)->Signal(SIGTERM);
//   EXPECT_EQ((*worker)->WaitForExit(absl::Seconds(10)).value(), 0);
//
// Used by one thread. The timeouts only bound a failing test.
class Process {
 public:
  // `binary` is a path, or one relative to the test's runfiles. `environment`
  // is added to the test's own; what has a health service takes a free port for
  // it, and what has metrics serves none, unless it is told otherwise.
  static absl::StatusOr<std::unique_ptr<Process>> Start(
      const std::string& binary, const std::vector<std::string>& arguments,
      const std::map<std::string, std::string>& environment = {});

  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }

  // The first line of output that contains `text`; DEADLINE_EXCEEDED, or
  // UNAVAILABLE when the output ended without one, has the output so far.
  absl::StatusOr<std::string> WaitForLine(absl::string_view text,
                                          absl::Duration timeout);

  // The port in the line "…: serving NAME on HOST:PORT".
  absl::StatusOr<int> WaitForPort(absl::Duration timeout);

  void Signal(int signal);

  // The exit code, or 128 + the signal that ended it. All it wrote is in
  // output() then.
  absl::StatusOr<int> WaitForExit(absl::Duration timeout);

  // All output so far.
  std::string output() const;

  // Nobody reads its output any more, and the pipe is full: whatever writes to
  // it waits from now on. Once.
  void StopReading();

 private:
  Process(pid_t pid, int output_fd);
  void Read();
  void EndReader();
  void AwaitRestOfOutput();

  const pid_t pid_;
  const int output_fd_;
  int exit_code_ = -1;  // -1: not reaped

  mutable absl::Mutex mutex_;
  std::string output_ ABSL_GUARDED_BY(mutex_);
  bool output_ended_ ABSL_GUARDED_BY(mutex_) = false;
  int idle_polls_ ABSL_GUARDED_BY(mutex_) = 0;  // that found nothing to read
  bool stop_reading_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread reader_;  // "output"; joined by the destructor or StopReading
};

// The absolute path of a file among the test's runfiles, named from the
// workspace's root. An absolute path stays, and any where no test runs.
std::string InRunfiles(const std::string& path);

// The processes whose parent is `pid`.
std::vector<pid_t> ChildrenOf(pid_t pid);

// Whether `pid` still runs; one that only waits to be reaped does not.
bool IsRunning(pid_t pid);

// Waits for the end of a process that need not be a child of this one. False
// when it still runs.
bool WaitUntilGone(pid_t pid, absl::Duration timeout);

}  // namespace lockstep::testing
