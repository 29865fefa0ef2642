#pragma once

#include <absl/strings/str_cat.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/health.grpc.pb.h"
#include "proto/worker.grpc.pb.h"
#include "tests/e2e/tiny_model_test_fixture.h"
#include "tests/testing/process.h"

namespace lockstep::testing {

// Worker groups as processes, on ports the system chooses.
//
//   TEST_F(WorkerTest, Generates) {
//     Group group(2);
//     Call call(*group.stub, Request(8));
//     EXPECT_TRUE(call.ReadToEnd().ok());
//   }
class WorkerTest : public TinyModelTest {
 protected:
  static constexpr char kWorker[] = "worker/worker";
  // What a group promises for its own end.
  static constexpr absl::Duration kEndOfABrokenGroup = absl::Seconds(5);

  // Of a rank of a group of `size`, and `flags` after them.
  static std::vector<std::string> Arguments(
      int size, const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {
        absl::StrCat("--model=", ModelPath()),
        absl::StrCat("--tensor_parallel_size=", size),
        "--served_model_name=tiny",
        "--listen=127.0.0.1:0",
        "--threads=1",
        "--num_pages=4096"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return arguments;
  }

  static v1::WorkerGenerateRequest Request(uint32_t max_tokens) {
    v1::WorkerGenerateRequest request;
    for (uint32_t id = 3; id < 40; ++id) request.add_prompt_token_ids(id);
    request.mutable_sampling()->set_temperature(0);
    request.mutable_sampling()->set_ignore_eos(true);
    request.mutable_sampling()->set_max_tokens(max_tokens);
    return request;
  }

  // One Generate call.
  class Call {
   public:
    Call(v1::Worker::Stub& stub, const v1::WorkerGenerateRequest& request,
         absl::Duration timeout = absl::InfiniteDuration()) {
      if (timeout < absl::InfiniteDuration()) {
        context_.set_deadline(std::chrono::system_clock::now() +
                              absl::ToChronoMilliseconds(timeout));
      }
      reader_ = stub.Generate(&context_, request);
    }

    // Reads until tokens have come; false at the end.
    bool ReadDelta() {
      v1::WorkerGenerateResponse message;
      while (reader_->Read(&message)) {
        tokens.insert(tokens.end(), message.delta().token_ids().begin(),
                      message.delta().token_ids().end());
        if (message.has_delta()) return true;
      }
      return false;
    }

    grpc::Status ReadToEnd() {
      while (ReadDelta()) {
      }
      return reader_->Finish();
    }

    void Cancel() { context_.TryCancel(); }

    std::vector<uint32_t> tokens;

   private:
    grpc::ClientContext context_;
    std::unique_ptr<grpc::ClientReader<v1::WorkerGenerateResponse>> reader_;
  };

  // A group that serves.
  struct Group {
    explicit Group(int size, const std::vector<std::string>& flags = {})
        : leader(*Process::Start(kWorker, Arguments(size, flags))) {
      const auto serving = leader->WaitForPort(kTimeout);
      EXPECT_TRUE(serving.ok()) << serving.status();
      port = serving.value_or(0);
      followers = ChildrenOf(leader->pid());
      EXPECT_EQ(followers.size(), size - 1);
      channel = Connect(absl::StrCat("127.0.0.1:", port));
      stub = v1::Worker::NewStub(channel);
    }

    grpc::health::v1::HealthCheckResponse::ServingStatus Health(
        const std::string& service) {
      grpc::ClientContext context;
      grpc::health::v1::HealthCheckRequest request;
      request.set_service(service);
      grpc::health::v1::HealthCheckResponse response;
      const grpc::Status status =
          grpc::health::v1::Health::NewStub(channel)->Check(&context, request,
                                                            &response);
      EXPECT_TRUE(status.ok()) << status.error_message();
      return response.status();
    }

    // Every process is gone. Nothing else can be left: all they share is memory
    // without a name.
    void ExpectGone(int exit_code, absl::Duration timeout) {
      EXPECT_EQ(leader->WaitForExit(timeout).value_or(-1), exit_code);
      for (const pid_t follower : followers) {
        EXPECT_TRUE(WaitUntilGone(follower, timeout));
      }
    }

    std::unique_ptr<Process> leader;
    std::vector<pid_t> followers;
    int port = 0;
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<v1::Worker::Stub> stub;
  };

  // Nothing runs or waits, and no page is held.
  static void WaitUntilIdle(Group& group) {
    grpc::ClientContext context;
    const auto watch = group.stub->WatchLoad(&context, {});
    v1::Load load;
    do {
      ASSERT_TRUE(watch->Read(&load));
    } while (load.running_sequences() > 0 || load.waiting_sequences() > 0);
    EXPECT_EQ(load.free_pages() + load.cached_pages(), load.total_pages());
    EXPECT_EQ(load.total_pages(), 4096);
    context.TryCancel();
  }

  static v1::ModelInfo ModelOf(Group& group) {
    v1::ModelInfo info;
    grpc::ClientContext context;
    EXPECT_TRUE(group.stub->GetModelInfo(&context, {}, &info).ok());
    return info;
  }

  static v1::ServerInfo ServerOf(Group& group) {
    v1::ServerInfo info;
    grpc::ClientContext context;
    EXPECT_TRUE(group.stub->GetServerInfo(&context, {}, &info).ok());
    return info;
  }
};

}  // namespace lockstep::testing
