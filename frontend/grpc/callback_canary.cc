#include "frontend/grpc/callback_canary.h"

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <optional>

namespace lockstep {

// One call after another.
class CallbackCanary::Caller : public std::enable_shared_from_this<Caller> {
 public:
  Caller(grpc::GenericStub* stub, TimerThread* timers,
         std::chrono::milliseconds every)
      : stub_(stub), timers_(timers), every_(every) {}

  void CallLater() {
    absl::MutexLock lock(&mutex_);
    context_.reset();  // and with it what it holds of the channel
    is_calling_ = false;
    if (is_stopped_) return;
    timer_ = timers_->At(Clock::now() + every_, [weak = weak_from_this()] {
      if (const auto caller = weak.lock()) caller->Call();
    });
  }

  void Stop() {
    absl::MutexLock lock(&mutex_);
    is_stopped_ = true;
    timers_->Cancel(timer_);
    const auto is_idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !is_calling_;
    };
    mutex_.Await(absl::Condition(&is_idle));
  }

  const Histogram& lag() const { return lag_; }

 private:
  using Clock = TimerThread::Clock;

  void Call() {
    {
      absl::MutexLock lock(&mutex_);
      if (is_stopped_) return;
      is_calling_ = true;
    }
    context_.emplace();
    stub_->UnaryCall(&*context_, "/lockstep.Canary/Call", {}, &request_,
                     &response_,
                     [self = shared_from_this(),
                      begun = Clock::now()](const grpc::Status& /*refused*/) {
                       self->lag_.Observe(Clock::now() - begun);
                       self->CallLater();
                     });
  }

  grpc::GenericStub* const stub_;
  TimerThread* const timers_;
  const std::chrono::milliseconds every_;
  Histogram lag_{kShortBounds};

  // Of the call in progress.
  const grpc::Slice nothing_{""};
  const grpc::ByteBuffer request_{&nothing_, 1};
  grpc::ByteBuffer response_;
  std::optional<grpc::ClientContext> context_;

  absl::Mutex mutex_;
  bool is_calling_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t timer_ ABSL_GUARDED_BY(mutex_) = 0;
};

namespace {

std::unique_ptr<grpc::Server> Serve(grpc::CallbackGenericService* service) {
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(service);
  return builder.BuildAndStart();
}

}  // namespace

CallbackCanary::CallbackCanary(TimerThread* timers,
                               std::chrono::milliseconds every)
    : server_(Serve(&service_)),
      stub_(server_->InProcessChannel({})),
      caller_(std::make_shared<Caller>(&stub_, timers, every)) {
  caller_->CallLater();
}

CallbackCanary::~CallbackCanary() { caller_->Stop(); }

const Histogram& CallbackCanary::lag() const { return caller_->lag(); }

}  // namespace lockstep
