#include "frontend/grpc/callback_canary.h"

#include <absl/synchronization/blocking_counter.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>

#include "common/grpc_server.h"
#include "common/health.grpc.pb.h"
#include "common/timer_thread.h"

namespace lockstep {
namespace {

uint64_t Count(const CallbackCanary& canary) {
  const auto counts = canary.lag().Read().counts;
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

void AwaitMore(const CallbackCanary& canary) {
  const uint64_t before = Count(canary);
  while (Count(canary) < before + 3) std::this_thread::yield();
}

TEST(CallbackCanary, CallsAgainAndAgain) {
  TimerThread timers;
  CallbackCanary canary(&timers, std::chrono::milliseconds(1));
  AwaitMore(canary);
}

TEST(CallbackCanary, EndsWhereverItIs) {
  TimerThread timers;
  for (int i = 0; i < 20; ++i) {
    CallbackCanary canary(&timers, std::chrono::milliseconds(0));
    if (i % 2 == 0) std::this_thread::yield();
  }
}

// As reactions that compute something would be.
TEST(CallbackCanary, SeesThatAllCallbackThreadsAreHeldUp) {
  using grpc::health::v1::Health;
  constexpr int kCalls = 64;  // more than there are threads
  auto server = GrpcServer::Start("127.0.0.1:0", "listen", {}, {});
  ASSERT_TRUE(server.ok()) << server.status();
  const auto health = Health::NewStub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string((*server)->port()),
                          grpc::InsecureChannelCredentials()));
  TimerThread timers;
  CallbackCanary canary(&timers, std::chrono::milliseconds(1));
  AwaitMore(canary);
  struct Call {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckRequest request;
    grpc::health::v1::HealthCheckResponse response;
  };
  std::array<Call, kCalls> calls;
  absl::BlockingCounter left(kCalls);
  const auto until = TimerThread::Clock::now() + std::chrono::milliseconds(200);
  for (Call& call : calls) {
    health->async()->Check(&call.context, &call.request, &call.response,
                           [&left, until](const grpc::Status&) {
                             while (TimerThread::Clock::now() < until) continue;
                             left.DecrementCount();
                           });
  }
  left.Wait();
  AwaitMore(canary);
  // In the buckets above 25 ms, of those with a bound.
  const auto counts = canary.lag().Read().counts;
  uint64_t late = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (i > 0 && kShortBounds[i - 1] >= 0.025) late += counts[i];
  }
  EXPECT_GE(late, 1);
}

}  // namespace
}  // namespace lockstep
