#pragma once

#include <absl/status/status.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "common/timer_thread.h"
#include "frontend/grpc/stream_watch.h"
#include "frontend/ledger/access_record.h"

namespace lockstep {

// What a client has to read an answer of one message: limits.write for each
// limits.least_bytes, of which gRPC tells nothing while they go, and at most
// limits.total.
std::chrono::nanoseconds TimeToRead(const StreamWatch::Limits& limits,
                                    size_t answer_bytes);

// What all calls with one answer need: who waits for it, how long it may take
// to be read, and the entry in the book. One that is not read in time is cut
// off, and what it held is free.
struct UnaryContext {
  grpc::CallbackServerContext* grpc = nullptr;
  std::shared_ptr<AccessRecord> record;
  TimerThread* timers = nullptr;  // outlives the call
  StreamWatch::Limits limits;
};

// One client's call with one answer, which is ended once.
//
//   UnaryCall* const call = UnaryCall::Start(context);
//   …on any thread: *response = …; call->End(absl::OkStatus(), bytes);
//   return call;
//
// Keeps itself alive until gRPC is done with it, which is after the End.
class UnaryCall : public grpc::ServerUnaryReactor,
                  public std::enable_shared_from_this<UnaryCall> {
 public:
  static UnaryCall* Start(UnaryContext context);
  ~UnaryCall() override = default;

  // With an answer of so many bytes, 0 where there is none. *this may be gone
  // afterwards.
  void End(const absl::Status& status, size_t answer_bytes);

 protected:
  explicit UnaryCall(UnaryContext context) : context_(std::move(context)) {}

  // Once, before an End.
  void KeepAlive() { self_ = shared_from_this(); }
  grpc::CallbackServerContext* context() const { return context_.grpc; }

 private:
  void OnDone() final;
  void CutOff();

  const UnaryContext context_;
  // Of the rest. What TryCancel leads to may come on its own thread, within it.
  std::recursive_mutex mutex_;
  bool is_done_ = false;  // gRPC's context is gone
  uint64_t timer_ = 0;
  std::shared_ptr<UnaryCall> self_;
};

}  // namespace lockstep
