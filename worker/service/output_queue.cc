#include "worker/service/output_queue.h"

#include <pthread.h>

#include <iterator>
#include <utility>

namespace lockstep {
namespace {

// What waits when a step that is let in adds its own. The three buffers change
// places, so each has room for all of it; memory is taken when it is written.
constexpr size_t kRoom = OutputQueue::kMaxWaiting + 4096;

}  // namespace

OutputQueue::OutputQueue(std::function<void(absl::Span<StepOutput>)> take)
    : take_(std::move(take)) {
  filling_.reserve(kRoom);
  waiting_.reserve(kRoom);
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "streams");
}

OutputQueue::~OutputQueue() {
  Flush();
  {
    absl::MutexLock lock(&mutex_);
    destroyed_ = true;
  }
  thread_.join();
}

void OutputQueue::Flush() {
  if (filling_.empty()) return;
  const auto has_room = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return waiting_.size() < kMaxWaiting;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&has_room));
  if (waiting_.empty()) {
    waiting_.swap(filling_);
    return;
  }
  waiting_.insert(waiting_.end(), std::make_move_iterator(filling_.begin()),
                  std::make_move_iterator(filling_.end()));
  filling_.clear();
}

void OutputQueue::Run() {
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return destroyed_ || !waiting_.empty();
  };
  std::vector<StepOutput> outputs;
  outputs.reserve(kRoom);
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&ready));
      if (waiting_.empty()) return;
      outputs.swap(waiting_);
    }
    take_(absl::MakeSpan(outputs));
    outputs.clear();
  }
}

}  // namespace lockstep
