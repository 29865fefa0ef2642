#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

namespace lockstep::bench {

// A process whose time and memory are asked for; its log goes where ours does.
// Ended by SIGTERM in the destructor, which waits for it, or with us. One
// thread.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto process,
//                             MeasuredProcess::Start({binary, "--flag"}));
//   const double before = process->CpuSeconds();
class MeasuredProcess {
 public:
  // `output`: a descriptor for its standard output; it is closed here. -1: that
  // goes to the standard error.
  static absl::StatusOr<std::unique_ptr<MeasuredProcess>> Start(
      const std::vector<std::string>& command, int output = -1);
  ~MeasuredProcess();
  MeasuredProcess(const MeasuredProcess&) = delete;
  MeasuredProcess& operator=(const MeasuredProcess&) = delete;

  // Of the processor, so far, in the process and in the kernel for it.
  double CpuSeconds() const;
  double ResidentMib() const { return StatusMib("VmRSS"); }
  double MostResidentMib() const { return StatusMib("VmHWM"); }  // ever

 private:
  explicit MeasuredProcess(pid_t pid) : pid_(pid) {}
  double StatusMib(const std::string& key) const;

  const pid_t pid_;
};

}  // namespace lockstep::bench
