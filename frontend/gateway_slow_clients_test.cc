// What becomes of clients that read slowly or not at all, and of those that
// wait, by the clock; time-outs are scaled down.

#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <absl/time/time.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "frontend/options.h"
#include "proto/inference.grpc.pb.h"
#include "tests/testing/fake_worker.h"
#include "tests/testing/gateway_test_fixture.h"
#include "tests/testing/http/raw_connection.h"
#include "tests/testing/http/scraped.h"

namespace lockstep {
namespace {

using ::lockstep::testing::AcceptedMessage;
using ::lockstep::testing::DeltaMessage;
using ::lockstep::testing::FakeAnswer;
using ::lockstep::testing::FinishMessage;
using ::lockstep::testing::GatewayTest;
using ::lockstep::testing::Hang;
using ::lockstep::testing::Outcome;
using ::lockstep::testing::Say;
using ::lockstep::testing::Scraped;
using ::lockstep::testing::SummaryMessage;
using ::lockstep::testing::TextRequest;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

using Stream = std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>>;

// 8 MB, more than all buffers on the way; complete, or without an end.
FakeAnswer Much(const v1::WorkerGenerateRequest& request, bool is_complete) {
  FakeAnswer answer;
  answer.messages = {AcceptedMessage(request)};
  answer.messages.insert(answer.messages.end(), 8000,
                         DeltaMessage(0, std::string(1000, 'x')));
  if (is_complete) {
    answer.messages.push_back(FinishMessage(0, v1::LENGTH));
    answer.messages.push_back(SummaryMessage());
  } else {
    answer.then = FakeAnswer::Then::kAwaitCancel;
  }
  return answer;
}

std::string HttpRequest(const std::string& body) {
  return absl::StrCat(
      "POST /v1/completions HTTP/1.1\r\nhost: x\r\n"
      "content-type: application/json\r\ncontent-length: ",
      body.size(), "\r\n\r\n", body);
}

class SlowClientsTest : public GatewayTest {
 protected:
  explicit SlowClientsTest(
      const std::function<void(GatewayOptions*)>& adjust = nullptr)
      : GatewayTest([&](GatewayOptions* options) {
          options->timeouts.write = milliseconds(1000);
          options->pipeline.max_inflight_requests = 2;
          if (adjust != nullptr) adjust(options);
        }) {}

  void AwaitInFlight(int number) {
    const auto in_flight = [&] {
      return Scraped(metrics_.Text())["lockstep_gateway_requests_in_flight"];
    };
    while (in_flight() != number) std::this_thread::yield();
  }

  // Of a client that reads the first message alone, and has no deadline.
  Stream ReadOne(grpc::ClientContext* context) {
    Stream stream = stub_->Generate(context, TextRequest());
    v1::GenerateResponse message;
    EXPECT_TRUE(stream->Read(&message));
    return stream;
  }

  static grpc::StatusCode ReadToEnd(
      grpc::ClientReader<v1::GenerateResponse>* stream) {
    v1::GenerateResponse message;
    while (stream->Read(&message)) continue;
    return stream->Finish().error_code();
  }
};

TEST_F(SlowClientsTest, StreamsThatNobodyReadsEndAndMakeRoomForOthers) {
  for (const bool is_complete : {false, true}) {
    SCOPED_TRACE(is_complete);
    worker_.set_script([&](const auto& request) {
      return request.sampling().max_tokens() == 1 ? Say(request, "y")
                                                  : Much(request, is_complete);
    });
    grpc::ClientContext contexts[2];
    const Stream unread[] = {ReadOne(&contexts[0]), ReadOne(&contexts[1])};
    v1::GenerateRequest quick = TextRequest();
    quick.mutable_sampling()->set_max_tokens(1);
    EXPECT_EQ(Generate(quick).status.error_code(),
              grpc::StatusCode::RESOURCE_EXHAUSTED);
    AwaitInFlight(0);
    EXPECT_EQ(Generate(quick).Text(), "y");
    for (const Stream& stream : unread) {
      EXPECT_EQ(ReadToEnd(stream.get()), grpc::StatusCode::CANCELLED);
    }
    AwaitInFlight(0);
  }
  EXPECT_EQ(Scraped(metrics_.Text())["lockstep_gateway_grpc_requests_total{"
                                     "method=\"Generate\",code=\"RESOURCE_"
                                     "EXHAUSTED\"}"],
            6);  // two refusals, four that were cut off
}

class LimitInAllTest : public SlowClientsTest {
 protected:
  LimitInAllTest()
      : SlowClientsTest([](GatewayOptions* options) {
          options->timeouts.write = milliseconds(60'000);
          options->routing.request_timeout = absl::Seconds(1);
        }) {}
};

// Whatever it waits for: a client, a group that was found, its first message.
TEST_F(LimitInAllTest, HoldsInEveryState) {
  const auto say_nothing = [](const auto&) {
    FakeAnswer answer;
    answer.then = FakeAnswer::Then::kAwaitCancel;
    return answer;
  };
  worker_.set_script(say_nothing);
  const Outcome unaccepted = Generate(TextRequest());
  worker_.set_script(Hang);
  const Outcome hanging = Generate(TextRequest());
  for (const Outcome& outcome : {unaccepted, hanging}) {
    EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    EXPECT_EQ(outcome.status.error_message(),
              "the answer was not complete after the 1s of "
              "--request_timeout.");
  }
  for (const bool is_complete : {false, true}) {
    worker_.set_script(
        [&](const auto& request) { return Much(request, is_complete); });
    grpc::ClientContext context;
    const Stream unread = ReadOne(&context);
    AwaitInFlight(0);
    EXPECT_NE(ReadToEnd(unread.get()), grpc::StatusCode::OK);
  }
}

// What a stream waits for is its client alone, over HTTP as over gRPC.
TEST_F(LimitInAllTest, HoldsForStreamsOverHttpThatNobodyReads) {
  for (const bool is_complete : {false, true}) {
    SCOPED_TRACE(is_complete);
    worker_.set_script(
        [&](const auto& request) { return Much(request, is_complete); });
    const int before = static_cast<int>(worker_.requests().size());
    testing::RawConnection client(http_port());
    client.Send(HttpRequest(R"({"prompt": "hi", "stream": true})"));
    worker_.WaitForRequests(before + 1);
    AwaitInFlight(0);
    const std::string all = client.ReadAll();
    EXPECT_THAT(all, HasSubstr("the answer was not complete after the 1s of "
                               "--request_timeout."));
    EXPECT_THAT(all, Not(HasSubstr("[DONE]")));
  }
}

class PatientTest : public SlowClientsTest {
 protected:
  PatientTest()
      : SlowClientsTest([](GatewayOptions* options) {
          options->timeouts.write = milliseconds(60'000);
        }) {}
};

// Its request is in flight no more, as a worker has no part in it.
TEST_F(PatientTest, ACompleteAnswerIsReadToItsEndThoughTheGatewayDrains) {
  worker_.set_script([](const auto& request) { return Much(request, true); });
  testing::RawConnection client(http_port());
  client.Send(HttpRequest(R"({"prompt": "hi"})"));
  worker_.WaitForRequests(1);
  AwaitInFlight(0);
  absl::Notification drained;
  std::thread drain([&] {
    gateway_->Drain();
    drained.Notify();
  });
  EXPECT_FALSE(drained.WaitForNotificationWithTimeout(absl::Milliseconds(500)));
  const testing::RawResponse response = client.Read();
  EXPECT_EQ(response.status, 200);
  EXPECT_GT(response.body.size(), 8'000'000);
  drain.join();
}

class HeartbeatTest : public SlowClientsTest {
 protected:
  HeartbeatTest()
      : SlowClientsTest([](GatewayOptions* options) {
          options->timeouts.keep_alive = milliseconds(50);
        }) {}
};

TEST_F(HeartbeatTest, AStreamThatIsSilentIsKeptAlive) {
  worker_.set_script(Hang);
  grpc::ClientContext context;
  const Stream stream = stub_->Generate(&context, TextRequest());
  v1::GenerateResponse message;
  ASSERT_TRUE(stream->Read(&message));
  EXPECT_TRUE(message.has_accepted());
  v1::GenerateResponse heartbeat;
  heartbeat.mutable_delta();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(stream->Read(&message));
    EXPECT_EQ(message.SerializeAsString(), heartbeat.SerializeAsString());
  }
  context.TryCancel();
  EXPECT_EQ(ReadToEnd(stream.get()), grpc::StatusCode::CANCELLED);
}

// The first message is `accepted`, or there is none.
TEST_F(HeartbeatTest, NothingComesBeforeItIsAccepted) {
  worker_.set_script([](const auto&) {
    FakeAnswer answer;
    answer.then = FakeAnswer::Then::kAwaitCancel;
    return answer;
  });
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + milliseconds(300));
  const Stream stream = stub_->Generate(&context, TextRequest());
  v1::GenerateResponse message;
  EXPECT_FALSE(stream->Read(&message));
}

}  // namespace
}  // namespace lockstep
