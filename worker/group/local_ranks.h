#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

namespace lockstep {

// The other ranks of this host, which its first rank starts and owns: the same
// binary with the same arguments and `extra` ones after them. They die with
// this process, however it ends. Each leads a process group of its own, so that
// a terminal's Ctrl-C reaches the first rank alone, which then stops them in
// order.
//
// One thread. The destructor kills those that still run, and reaps all.
class LocalRanks {
 public:
  struct Child {
    int rank = 0;
    std::vector<std::string> extra_arguments;
  };

  // `arguments` are this process's own, without its name. Other threads may
  // run: between fork and exec there are system calls only. Must be called on a
  // thread that lives as long as this, as the children die with it.
  static absl::StatusOr<std::unique_ptr<LocalRanks>> Start(
      const std::vector<std::string>& arguments,
      const std::vector<Child>& children);

  ~LocalRanks();
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

  // OK while all run; else UNAVAILABLE with the ranks that ended, and how.
  absl::Status Check();

  // Waits for all to end by themselves; false when some did not.
  bool WaitForAll(absl::Duration timeout);

 private:
  struct Process {
    int rank = 0;
    pid_t pid = 0;
    std::string ending;  // empty while it runs
    bool reaped = false;
  };

  LocalRanks() = default;
  void Reap();

  std::vector<Process> processes_;
};

}  // namespace lockstep
