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
//   TextPool pool("encode", /*threads=*/2, {.tasks = 1024});
//   LOCKSTEP_RETURN_IF_ERROR(pool.Run(text.size(), [this] { Encode(); }));
//
// Tasks start in the order they came, but for one thing: large ones leave a
// thread, where there are several, to those that are not. Any thread may call
// Run, a task too. The destructor runs what is queued and joins the threads.
class TextPool {
 public:
  static constexpr size_t kLargeBytes = 256 << 10;

  // Of what waits.
  struct Limits {
    size_t tasks;
    size_t bytes = size_t{256} << 20;
  };

  // Threads are called NAME-0, NAME-1, …
  TextPool(const std::string& name, int threads, const Limits& limits);
  ~TextPool();
  TextPool(const TextPool&) = delete;
  TextPool& operator=(const TextPool&) = delete;

  // `bytes` that the task works on and holds. RESOURCE_EXHAUSTED when a limit
  // is reached; the task does not run then.
  absl::Status Run(size_t bytes, std::function<void()> task);

  // Forgets what is queued, for an end at which nobody waits for it.
  void Clear();

 private:
  struct Task {
    size_t bytes;
    std::function<void()> run;

    bool is_large() const { return bytes > kLargeBytes; }
  };

  void Work();
  // The first that may start now; end() where there is none.
  std::deque<Task>::iterator FindTask() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return FindTask() != tasks_.end() || (stopping_ && tasks_.empty());
  }

  const std::string name_;
  const Limits limits_;
  const int max_large_;  // that may run at once
  absl::Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int running_large_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace lockstep
