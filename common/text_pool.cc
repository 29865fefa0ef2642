#include "common/text_pool.h"

#include <absl/strings/str_cat.h>
#include <pthread.h>

#include <algorithm>
#include <utility>

namespace lockstep {

TextPool::TextPool(const std::string& name, int threads, const Limits& limits)
    : name_(name), limits_(limits), max_large_(std::max(1, threads - 1)) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { Work(); });
    pthread_setname_np(threads_.back().native_handle(),
                       absl::StrCat(name, "-", i).c_str());
  }
}

TextPool::~TextPool() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::Status TextPool::Run(size_t bytes, std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  if (tasks_.size() >= limits_.tasks) {
    return absl::ResourceExhaustedError(
        absl::StrCat(limits_.tasks, " texts already wait for the ", name_,
                     " threads; try again later."));
  }
  if (bytes > limits_.bytes - waiting_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        waiting_bytes_, " bytes of text already wait for the ", name_,
        " threads, ", bytes, " more would pass the limit of ", limits_.bytes,
        "; try again later."));
  }
  waiting_bytes_ += bytes;
  tasks_.push_back({bytes, std::move(task)});
  return absl::OkStatus();
}

// What the tasks hold goes without the lock.
void TextPool::Clear() {
  std::deque<Task> forgotten;
  absl::MutexLock lock(&mutex_);
  forgotten.swap(tasks_);
  waiting_bytes_ = 0;
}

std::deque<TextPool::Task>::iterator TextPool::FindTask() {
  const bool may_be_large = running_large_ < max_large_;
  return std::find_if(tasks_.begin(), tasks_.end(), [&](const Task& task) {
    return may_be_large || !task.is_large();
  });
}

void TextPool::Work() {
  absl::MutexLock lock(&mutex_);
  while (true) {
    mutex_.Await(absl::Condition(this, &TextPool::HasWork));
    const auto found = FindTask();
    if (found == tasks_.end()) return;
    Task task = std::move(*found);
    tasks_.erase(found);
    waiting_bytes_ -= task.bytes;
    running_large_ += task.is_large();
    mutex_.Unlock();
    task.run();
    task.run = nullptr;  // what it holds goes without the lock
    mutex_.Lock();
    running_large_ -= task.is_large();
  }
}

}  // namespace lockstep
