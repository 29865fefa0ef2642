#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {

// Threads for work on text, which takes as long as the text is long and so
// must not run on gRPC's threads: a long prompt never holds up a stream.
//
//   TextPool pool("encode", /*threads=*/2, /*capacity=*/1024);
//   LOCKSTEP_RETURN_IF_ERROR(pool.Run([this] { Encode(); }));
//
// Tasks start in the order they came. Any thread may call Run, a task too. The
// destructor runs what is queued and joins the threads.
class TextPool {
 public:
  // Threads are called NAME-0, NAME-1, …; at most `capacity` tasks wait.
  TextPool(const std::string& name, int threads, size_t capacity);
  ~TextPool();
  TextPool(const TextPool&) = delete;
  TextPool& operator=(const TextPool&) = delete;

  // RESOURCE_EXHAUSTED when the queue is full; the task does not run then.
  absl::Status Run(std::function<void()> task);

 private:
  void Work();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !tasks_.empty();
  }

  const std::string name_;
  const size_t capacity_;
  absl::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace lockstep
