#pragma once

#include <csignal>

namespace lockstep {

// SIGTERM and SIGINT as something to wait for, instead of handlers.
//
//   ShutdownSignal shutdown;  // first thing in main
//   …
//   LOG(INFO) << "got signal " << shutdown.Wait() << "; draining";
class ShutdownSignal {
 public:
  // Blocks both signals in this thread and in those it starts from now on.
  ShutdownSignal();

  // Blocks until one comes and returns its number. After that another one ends
  // the process at once. Called once, on the thread of the constructor.
  int Wait();

 private:
  sigset_t signals_;
};

}  // namespace lockstep
