#include "common/text_pool.h"

#include <absl/strings/str_cat.h>
#include <pthread.h>

#include <utility>

namespace lockstep {

TextPool::TextPool(const std::string& name, int threads, size_t capacity)
    : name_(name), capacity_(capacity) {
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

absl::Status TextPool::Run(std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  if (tasks_.size() >= capacity_) {
    return absl::ResourceExhaustedError(
        absl::StrCat(capacity_, " texts already wait for the ", name_,
                     " threads; try again later."));
  }
  tasks_.push_back(std::move(task));
  return absl::OkStatus();
}

void TextPool::Work() {
  while (true) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &TextPool::HasWork));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace lockstep
