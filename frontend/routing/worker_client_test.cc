#include "frontend/routing/worker_client.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <arpa/inet.h>
#include <glog/logging.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/error_reason.h"
#include "common/grpc_status.h"
#include "frontend/routing/worker_call.h"
#include "tests/testing/fake_worker.h"

namespace lockstep {
namespace {

using ::lockstep::testing::FakeAnswer;
using ::lockstep::testing::FakeWorker;
using ::lockstep::testing::Say;

constexpr auto kNoDeadline = std::chrono::system_clock::time_point::max();

// Reads everything, or up to `most` messages.
class Reader : public WorkerCall::Listener {
 public:
  explicit Reader(size_t most = 1000) : most_(most) {}

  void Read(std::unique_ptr<WorkerCall> call) {
    call_ = std::move(call);
    call_->Start();
  }

  void OnMessage(const v1::WorkerGenerateResponse& message) override {
    messages.push_back(message);
    if (messages.size() == most_) {
      paused.Notify();
    } else {
      call_->Next();
    }
  }
  void OnEnd(absl::Status status) override {
    end = std::move(status);
    ended.Notify();
  }

  WorkerCall& call() { return *call_; }

  std::vector<v1::WorkerGenerateResponse> messages;
  absl::Notification paused;
  absl::Status end;
  absl::Notification ended;

 private:
  const size_t most_;
  std::unique_ptr<WorkerCall> call_;
};

TEST(WorkerClient, StreamsAnAnswer) {
  FakeWorker worker;
  worker.set_script([](const auto& request) { return Say(request, "abc"); });
  worker.Start();
  WorkerClient client(worker.address());
  Reader reader;
  reader.Read(client.Generate({}, {}, kNoDeadline, &reader));
  reader.ended.WaitForNotification();
  EXPECT_TRUE(reader.end.ok()) << reader.end;
  EXPECT_EQ(reader.messages.size(), 6);
}

TEST(WorkerClient, NothingIsReadThatWasNotAskedFor) {
  FakeWorker worker;
  worker.set_script([](const auto& request) { return Say(request, "abc"); });
  worker.Start();
  WorkerClient client(worker.address());
  Reader reader(/*most=*/2);
  reader.Read(client.Generate({}, {}, kNoDeadline, &reader));
  reader.paused.WaitForNotification();
  EXPECT_EQ(reader.messages.size(), 2);
  EXPECT_FALSE(reader.ended.HasBeenNotified());
  reader.call().Next();
  reader.ended.WaitForNotification();
  EXPECT_EQ(reader.messages.size(), 6);
}

TEST(WorkerClient, ACancelledCallEndsWithTheNextRead) {
  FakeWorker worker;
  worker.set_script([](const auto& request) {
    FakeAnswer answer = Say(request, "a");
    answer.then = FakeAnswer::Then::kAwaitCancel;
    return answer;
  });
  worker.Start();
  WorkerClient client(worker.address());
  Reader reader(/*most=*/4);
  reader.Read(client.Generate({}, {}, kNoDeadline, &reader));
  reader.paused.WaitForNotification();
  reader.call().Cancel();
  worker.WaitForCancels(1);
  EXPECT_FALSE(reader.ended.HasBeenNotified());
  reader.call().Next();
  reader.ended.WaitForNotification();
}

TEST(WorkerClient, AWorkerThatIsNotThereIsNamed) {
  FakeWorker worker;
  worker.Start();
  worker.Stop();
  WorkerClient client(worker.address());
  Reader reader;
  reader.Read(client.Generate({}, {}, kNoDeadline, &reader));
  reader.ended.WaitForNotification();
  EXPECT_EQ(reader.end.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StartsWith(
      reader.end.message(),
      "the worker at " + worker.address() + " is unavailable: "))
      << reader.end;
}

// Connections come to be, and nobody says a word on them, as on a link that
// loses packets.
class SilentListener {
 public:
  SilentListener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const as_any = reinterpret_cast<sockaddr*>(&address);
    CHECK_EQ(bind(fd_, as_any, size), 0);
    CHECK_EQ(listen(fd_, 100), 0);
    CHECK_EQ(getsockname(fd_, as_any, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~SilentListener() {
    for (const int fd : accepted_) close(fd);
    close(fd_);
  }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  // Connections that have been made so far.
  size_t Count() {
    for (int fd = 0; (fd = accept(fd_, nullptr, nullptr)) >= 0;) {
      accepted_.push_back(fd);
    }
    return accepted_.size();
  }

 private:
  const int fd_;
  int port_ = 0;
  std::vector<int> accepted_;
};

TEST(WorkerClient, AnAttemptToConnectHasTimeToSucceed) {
  SilentListener listener;
  WorkerClient client(listener.address());
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(700));
  EXPECT_FALSE(client.GetModelInfo(&context).ok());
  EXPECT_EQ(listener.Count(), 1);
}

TEST(WorkerClient, WordsForEachEnd) {
  const auto describe = [](grpc::StatusCode code) {
    return DescribeWorkerStatus(grpc::Status(code, "words"), "host:1");
  };
  EXPECT_EQ(describe(grpc::StatusCode::INVALID_ARGUMENT),
            absl::InvalidArgumentError("words"));
  EXPECT_EQ(describe(grpc::StatusCode::RESOURCE_EXHAUSTED),
            absl::ResourceExhaustedError("words"));
  EXPECT_EQ(describe(grpc::StatusCode::UNAVAILABLE),
            MakeError(ErrorReason::kWorkerUnreachable,
                      "the worker at host:1 is unavailable: words"));
  EXPECT_EQ(describe(grpc::StatusCode::CANCELLED),
            MakeError(ErrorReason::kWorkerUnreachable,
                      "the worker at host:1 gave the request up; try again."));
  EXPECT_EQ(describe(grpc::StatusCode::DEADLINE_EXCEEDED).code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST(WorkerClient, TheWorkersReasonStays) {
  for (const ErrorReason reason :
       {ErrorReason::kGroupFailed, ErrorReason::kQueueFullTokens,
        ErrorReason::kDeadlineInQueue, ErrorReason::kInvalidRequest}) {
    const absl::Status said = MakeError(
        reason, "words",
        {.metadata = {{"rank", "1"}}, .retry_delay = absl::Seconds(2)});
    const absl::Status told = DescribeWorkerStatus(ToGrpc(said), "host:1");
    EXPECT_EQ(told.code(), said.code());
    EXPECT_EQ(ErrorReasonOf(told), ErrorReasonOf(said));
    EXPECT_EQ(ErrorMetadataOf(told), ErrorMetadataOf(said));
    EXPECT_EQ(RetryDelayOf(told), absl::Seconds(2));
  }
}

}  // namespace
}  // namespace lockstep
