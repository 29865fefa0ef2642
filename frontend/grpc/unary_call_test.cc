#include "frontend/grpc/unary_call.h"

#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <absl/time/time.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "common/grpc_server.h"
#include "common/timer_thread.h"
#include "common/wire.h"
#include "frontend/grpc/stream_watch.h"
#include "frontend/ledger/access_record.h"
#include "proto/inference.grpc.pb.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

TEST(TimeToRead, GrowsWithTheAnswerUpToTheLimitInAll) {
  const StreamWatch::Limits limits = {.write = milliseconds(30),
                                      .total = milliseconds(100),
                                      .least_bytes = 1000};
  const struct {
    size_t bytes;
    milliseconds time;
  } kCases[] = {
      {0, milliseconds(30)},     {1000, milliseconds(30)},
      {1001, milliseconds(60)},  {3000, milliseconds(90)},
      {3001, milliseconds(100)}, {size_t{64} << 20, milliseconds(100)}};
  for (const auto& c : kCases) {
    EXPECT_EQ(TimeToRead(limits, c.bytes), c.time) << c.bytes;
  }
  EXPECT_EQ(TimeToRead({.write = milliseconds(0)}, 1 << 20),
            StreamWatch::Limits().total);
}

// That is seen to be gone.
class SeenCall final : public UnaryCall {
 public:
  SeenCall(UnaryContext context, absl::Notification* gone)
      : UnaryCall(std::move(context)), gone_(gone) {}
  ~SeenCall() override { gone_->Notify(); }

  void Start() { KeepAlive(); }

 private:
  absl::Notification* const gone_;
};

// Answers with a megabyte, which has 200 ms.
class Megabyte final : public v1::Inference::WithRawCallbackMethod_Detokenize<
                           v1::Inference::Service> {
 public:
  explicit Megabyte(TimerThread* timers) : timers_(timers) {}

  grpc::ServerUnaryReactor* Detokenize(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* /*request*/,
                                       grpc::ByteBuffer* response) override {
    const auto call = std::make_shared<SeenCall>(
        UnaryContext{
            .grpc = context,
            .record = std::make_shared<AccessRecord>(AccessRecord::Request()),
            .timers = timers_,
            .limits = {.write = milliseconds(200), .least_bytes = 2 << 20}},
        &gone);
    call->Start();
    v1::DetokenizeResponse message;
    message.set_text(std::string(1 << 20, 'x'));
    *response = SerializeMessage(message);
    call->End(absl::OkStatus(), response->Length());
    return call.get();
  }

  absl::Notification gone;  // of the one call

 private:
  TimerThread* const timers_;
};

// Flow control lets but the first bytes go to a client that reads nothing.
TEST(UnaryCall, IsCutOffWhereItsClientDoesNotRead) {
  TimerThread timers;
  Megabyte service(&timers);
  auto server = GrpcServer::Start("127.0.0.1:0", "listen", {&service}, {});
  ASSERT_TRUE(server.ok()) << server.status();
  grpc::ChannelArguments arguments = ChannelArguments();
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // windows do not grow
  grpc::GenericStub stub(
      grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", (*server)->port()),
                                grpc::InsecureChannelCredentials(), arguments));
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  const auto call =
      stub.PrepareCall(&context, "/lockstep.v1.Inference/Detokenize", &queue);
  const auto await = [&] {
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    return ok;
  };
  call->StartCall(nullptr);
  ASSERT_TRUE(await());
  call->WriteLast(SerializeMessage(v1::DetokenizeRequest()),
                  grpc::WriteOptions(), nullptr);
  ASSERT_TRUE(await());
  ASSERT_TRUE(service.gone.WaitForNotificationWithTimeout(absl::Seconds(50)));
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  EXPECT_FALSE(await());
  grpc::Status status;
  call->Finish(&status, nullptr);
  ASSERT_TRUE(await());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace lockstep
