#include "frontend/grpc/unary_call.h"

#include <algorithm>
#include <utility>

#include "common/grpc_status.h"

namespace lockstep {

std::chrono::nanoseconds TimeToRead(const StreamWatch::Limits& limits,
                                    size_t answer_bytes) {
  const size_t parts = std::max<size_t>(
      1, (answer_bytes + limits.least_bytes - 1) / limits.least_bytes);
  const std::chrono::nanoseconds write = limits.write, total = limits.total;
  // Not the product, which may be too large.
  if (write.count() == 0 || parts > size_t(total / write)) {
    return std::max(write, total);
  }
  return write * parts;
}

UnaryCall* UnaryCall::Start(UnaryContext context) {
  const std::shared_ptr<UnaryCall> call(new UnaryCall(std::move(context)));
  call->KeepAlive();
  return call.get();
}

void UnaryCall::End(const absl::Status& status, size_t answer_bytes) {
  context_.record->SetGrpcStatus(status);
  {
    const std::lock_guard lock(mutex_);
    // Trailers alone wait for no client.
    if (status.ok()) {
      timer_ = context_.timers->At(
          TimerThread::Clock::now() + TimeToRead(context_.limits, answer_bytes),
          [weak = weak_from_this()] {
            if (const auto call = weak.lock()) call->CutOff();
          });
    }
  }
  Finish(ToGrpc(status));
}

void UnaryCall::CutOff() {
  const std::lock_guard lock(mutex_);
  if (!is_done_) context_.grpc->TryCancel();
}

void UnaryCall::OnDone() {
  std::shared_ptr<UnaryCall> self;  // outlives the lock
  const std::lock_guard lock(mutex_);
  is_done_ = true;
  context_.timers->Cancel(timer_);
  self = std::move(self_);
}

}  // namespace lockstep
