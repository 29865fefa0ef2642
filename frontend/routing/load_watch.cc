#include "frontend/routing/load_watch.h"

#include <absl/time/time.h>
#include <pthread.h>

namespace lockstep {
namespace {

constexpr absl::Duration kRetryAfter = absl::Milliseconds(500);

}  // namespace

void LoadWatch::Start() {
  thread_ = std::thread([this] { Follow(); });
  pthread_setname_np(thread_.native_handle(), "load-watch");
}

void LoadWatch::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    if (active_ != nullptr) active_->TryCancel();
  }
  if (thread_.joinable()) thread_.join();
}

void LoadWatch::Follow() {
  while (true) {
    FollowOnce();
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(this, &LoadWatch::IsStopping),
                                kRetryAfter)) {
      return;
    }
  }
}

void LoadWatch::FollowOnce() {
  grpc::ClientContext context;
  if (!SetActive(&context)) return;
  const auto stream = client_->WatchLoad(&context);
  v1::Load load;
  while (stream->Read(&load)) on_load_(load);
  SetActive(nullptr);
  stream->Finish();
}

bool LoadWatch::SetActive(grpc::ClientContext* context) {
  absl::MutexLock lock(&mutex_);
  active_ = stopping_ ? nullptr : context;
  return !stopping_;
}

}  // namespace lockstep
