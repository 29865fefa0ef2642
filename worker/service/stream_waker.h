#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <memory>
#include <thread>
#include <vector>

#include "worker/service/output_stream.h"

namespace lockstep {

// Wakes the readers of streams on a thread of its own, "streams": a reader
// serializes messages and hands them to gRPC, which no step should wait for.
//
//   waker.Add(&streams);  // never blocks
//
// A stream that waits already need not be added again, see
// OutputStream::ClaimWake; so no more wait than are live. The destructor wakes
// those that are left. Any thread.
class StreamWaker {
 public:
  StreamWaker();
  ~StreamWaker();
  StreamWaker(const StreamWaker&) = delete;
  StreamWaker& operator=(const StreamWaker&) = delete;

  // Leaves `streams` empty.
  void Add(std::vector<std::shared_ptr<OutputStream>>* streams);

 private:
  void Run();

  absl::Mutex mutex_;
  std::vector<std::shared_ptr<OutputStream>> waiting_ ABSL_GUARDED_BY(mutex_);
  bool destroyed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep
