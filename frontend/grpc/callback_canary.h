#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>

#include "common/metrics/histogram.h"
#include "common/timer_thread.h"

namespace lockstep {

// How long a call takes, of ten a second within this process, that asks for
// nothing. It waits for nobody but gRPC's callback threads, which carry on all
// streams and are as few as the cores: what is long here held up all of them.
//
//   CallbackCanary canary(&timers);
//   …canary.lag()…
//
// One thread's; lag() is any thread's. The destructor waits for the call in
// progress, so it is not of a callback's.
class CallbackCanary {
 public:
  // `timers` must outlive this.
  explicit CallbackCanary(
      TimerThread* timers,
      std::chrono::milliseconds every = std::chrono::milliseconds(100));
  ~CallbackCanary();

  const Histogram& lag() const;

 private:
  class Caller;

  grpc::CallbackGenericService service_;  // refuses all calls
  std::unique_ptr<grpc::Server> server_;  // on no port
  grpc::GenericStub stub_;
  std::shared_ptr<Caller> caller_;
};

}  // namespace lockstep
