#include "worker/service/stream_waker.h"

#include <pthread.h>

#include <iterator>

namespace lockstep {

StreamWaker::StreamWaker() : thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "streams");
}

StreamWaker::~StreamWaker() {
  {
    absl::MutexLock lock(&mutex_);
    destroyed_ = true;
  }
  thread_.join();
}

void StreamWaker::Add(std::vector<std::shared_ptr<OutputStream>>* streams) {
  if (streams->empty()) return;
  absl::MutexLock lock(&mutex_);
  waiting_.insert(waiting_.end(), std::make_move_iterator(streams->begin()),
                  std::make_move_iterator(streams->end()));
  streams->clear();
}

void StreamWaker::Run() {
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return destroyed_ || !waiting_.empty();
  };
  std::vector<std::shared_ptr<OutputStream>> streams;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&ready));
      if (waiting_.empty()) return;
      streams.swap(waiting_);
    }
    for (const auto& stream : streams) stream->Wake();
    streams.clear();
  }
}

}  // namespace lockstep
