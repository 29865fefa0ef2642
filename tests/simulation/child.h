#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

namespace lockstep::testing {

// Work in a forked child process, so that a CHECK that fails is a result, too.
//
//   Child child([](uint64_t* progress) { …; return std::string("result"); });
//   absl::StatusOr<std::string> result = child.Join();
//
// Fork it while no other thread runs.
class Child {
 public:
  explicit Child(const std::function<std::string(uint64_t* progress)>& work);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // What the work returned; INTERNAL with its last words where it crashed.
  absl::StatusOr<std::string> Join();

  // What the work wrote there, a crashed one's too.
  uint64_t progress() const { return *progress_; }

 private:
  uint64_t* const progress_;  // shared with the child
  int result_ = -1;           // the end of a pipe
  int words_ = -1;            // a file with what it wrote to stderr
  pid_t process_ = -1;
};

}  // namespace lockstep::testing
