// Worker groups as processes, on ports the system chooses, with a random model
// that is made here.

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "common/grpc_server.h"
#include "common/health.grpc.pb.h"
#include "proto/worker.grpc.pb.h"
#include "tests/testing/process.h"
#include "tests/testing/reflection_client.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"

namespace lockstep {
namespace {

using ::grpc::health::v1::HealthCheckResponse;
using ::lockstep::testing::Process;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kWorker[] = "worker/worker";
constexpr absl::Duration kTimeout = absl::Seconds(60);
// What the group promises for its own end.
constexpr absl::Duration kEndOfABrokenGroup = absl::Seconds(5);
// Of a request that is meant to be cut short: seconds of work.
constexpr uint32_t kEndlessTokens = 60'000;

std::string ModelPath() { return ::testing::TempDir() + "tiny-model.gguf"; }

v1::WorkerGenerateRequest Request(uint32_t max_tokens) {
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
  Call(v1::Worker::Stub& stub, const v1::WorkerGenerateRequest& request)
      : reader_(stub.Generate(&context_, request)) {}

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
class Group {
 public:
  explicit Group(int size, const std::vector<std::string>& flags = {}) {
    std::vector<std::string> arguments = {
        absl::StrCat("--model=", ModelPath()),
        absl::StrCat("--tensor_parallel_size=", size),
        "--served_model_name=tiny",
        "--listen=127.0.0.1:0",
        "--threads=1",
        "--num_pages=4096"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    leader = *Process::Start(kWorker, arguments);
    const auto serving = leader->WaitForPort(kTimeout);
    EXPECT_TRUE(serving.ok()) << serving.status();
    port = serving.value_or(0);
    followers = testing::ChildrenOf(leader->pid());
    EXPECT_EQ(followers.size(), size - 1);
    channel = grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port),
                                        grpc::InsecureChannelCredentials(),
                                        ChannelArguments());
    stub = v1::Worker::NewStub(channel);
  }

  HealthCheckResponse::ServingStatus Health(const std::string& service) {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
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
      EXPECT_TRUE(testing::WaitUntilGone(follower, timeout));
    }
  }

  std::unique_ptr<Process> leader;
  std::vector<pid_t> followers;
  int port = 0;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Worker::Stub> stub;
};

class WorkerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    testing::TinyModel model;
    model.max_context = kEndlessTokens + 1000;
    testing::WriteGguf(model, ModelPath());
  }
};

TEST_F(WorkerTest, ServesWithHealthAndReflection) {
  Group group(1);
  EXPECT_EQ(group.Health(""), HealthCheckResponse::SERVING);
  EXPECT_EQ(group.Health("lockstep.v1.Worker"), HealthCheckResponse::SERVING);
  testing::ReflectionClient reflection(group.channel);
  const auto services = reflection.ListServices();
  ASSERT_TRUE(services.ok()) << services.status();
  EXPECT_THAT(*services, Contains("lockstep.v1.Worker"));
  EXPECT_TRUE(reflection.FilesOf("lockstep.v1.Worker.Generate").ok());

  v1::ModelInfo model;
  grpc::ClientContext context;
  ASSERT_TRUE(group.stub->GetModelInfo(&context, {}, &model).ok());
  EXPECT_EQ(model.name(), "tiny");
  EXPECT_EQ(model.max_context_tokens(), kEndlessTokens + 1000);
}

TEST_F(WorkerTest, TwoRanksGiveTheTokensOfOne) {
  Group one(1), two(2);
  v1::ServerInfo info;
  grpc::ClientContext context;
  ASSERT_TRUE(two.stub->GetServerInfo(&context, {}, &info).ok());
  ASSERT_THAT(info.identical_tensor_parallel_sizes(), Contains(1));
  Call at_one(*one.stub, Request(100)), at_two(*two.stub, Request(100));
  EXPECT_TRUE(at_one.ReadToEnd().ok());
  EXPECT_TRUE(at_two.ReadToEnd().ok());
  EXPECT_EQ(at_one.tokens.size(), 100);
  EXPECT_EQ(at_one.tokens, at_two.tokens);
}

TEST_F(WorkerTest, ACancelFreesThePages) {
  Group group(2);
  Call call(*group.stub, Request(kEndlessTokens));
  ASSERT_TRUE(call.ReadDelta());
  call.Cancel();
  grpc::ClientContext context;
  const auto watch = group.stub->WatchLoad(&context, {});
  v1::Load load;
  do {
    ASSERT_TRUE(watch->Read(&load));
  } while (load.running_sequences() > 0);
  EXPECT_EQ(load.free_pages() + load.cached_pages(), load.total_pages());
  EXPECT_EQ(load.total_pages(), 4096);
  context.TryCancel();
}

TEST_F(WorkerTest, ASecondGroupOnThePortSaysWhichFlagToChange) {
  Group group(1);
  auto second = *Process::Start(
      kWorker, {absl::StrCat("--model=", ModelPath()),
                absl::StrCat("--listen=127.0.0.1:", group.port)});
  EXPECT_EQ(second->WaitForExit(kTimeout).value_or(-1), 1);
  EXPECT_THAT(second->output(),
              HasSubstr("worker: cannot listen on 127.0.0.1:"));
  EXPECT_THAT(second->output(), HasSubstr("choose another with --listen."));
  EXPECT_EQ(group.Health(""), HealthCheckResponse::SERVING);
}

TEST_F(WorkerTest, AKilledFollowerEndsStreamsAndProcesses) {
  Group group(3);
  Call call(*group.stub, Request(kEndlessTokens));
  ASSERT_TRUE(call.ReadDelta());
  kill(group.followers[1], SIGKILL);
  const grpc::Status status = call.ReadToEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(),
              HasSubstr("the worker group failed: rank 2 failed first: "));
  group.ExpectGone(/*exit_code=*/1, kEndOfABrokenGroup);
  EXPECT_THAT(group.leader->output(), HasSubstr("the group failed: rank 2"));
}

TEST_F(WorkerTest, AKilledLeaderEndsItsFollowers) {
  Group group(3);
  Call call(*group.stub, Request(kEndlessTokens));
  ASSERT_TRUE(call.ReadDelta());
  group.leader->Signal(SIGKILL);
  EXPECT_EQ(call.ReadToEnd().error_code(), grpc::StatusCode::UNAVAILABLE);
  group.ExpectGone(128 + SIGKILL, kEndOfABrokenGroup);
}

TEST_F(WorkerTest, ARankThatHangsIsFoundByItsStep) {
  Group group(2, {"--step_timeout=1"});
  Call call(*group.stub, Request(kEndlessTokens));
  ASSERT_TRUE(call.ReadDelta());
  kill(group.followers[0], SIGSTOP);
  const grpc::Status status = call.ReadToEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("--step_timeout"));
  group.ExpectGone(/*exit_code=*/1, kEndOfABrokenGroup);
}

TEST_F(WorkerTest, ADrainFinishesTheStreamsAndLetsNobodyIn) {
  Group group(2);
  Call call(*group.stub, Request(2000));
  ASSERT_TRUE(call.ReadDelta());
  kill(group.followers[0], SIGTERM);  // has no effect
  group.leader->Signal(SIGTERM);
  ASSERT_TRUE(group.leader->WaitForLine("draining", kTimeout).ok());
  Call late(*group.stub, Request(1));
  const grpc::Status refused = late.ReadToEnd();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("draining"));
  EXPECT_EQ(group.Health(""), HealthCheckResponse::NOT_SERVING);
  EXPECT_TRUE(call.ReadToEnd().ok());
  EXPECT_EQ(call.tokens.size(), 2000);
  group.ExpectGone(/*exit_code=*/0, kTimeout);
}

TEST_F(WorkerTest, ASecondSignalEndsTheDrain) {
  Group group(2);
  Call call(*group.stub, Request(kEndlessTokens));
  ASSERT_TRUE(call.ReadDelta());
  group.leader->Signal(SIGINT);
  ASSERT_TRUE(group.leader->WaitForLine("draining", kTimeout).ok());
  group.leader->Signal(SIGINT);
  const grpc::Status status = call.ReadToEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("shut down"));
  group.ExpectGone(/*exit_code=*/0, kTimeout);
}

TEST_F(WorkerTest, AStartThatFailsSaysWhatToChange) {
  const struct {
    std::vector<std::string> flags;
    std::string sentence;
  } kCases[] = {
      {{}, "worker: --model is not given"},
      {{"--model=/nowhere/model"}, "worker: there is no model /nowhere/model"},
      {{absl::StrCat("--model=", ModelPath()), "--tensor_parallel_size=3",
        "--rank=3"},
       "worker: --rank is 3; it must be 0 to 2."},
      {{absl::StrCat("--model=", ModelPath()), "--max_context=100000"},
       "worker: --max_context is 100000; the model's is 61000."},
      {{absl::StrCat("--model=", ModelPath()), "surplus"},
       "worker: \"surplus\" is no flag"},
      {{absl::StrCat("--model=", ModelPath()), "--cpu_isa=z80"}, "--cpu_isa"},
  };
  for (const auto& [flags, sentence] : kCases) {
    auto worker = *Process::Start(kWorker, flags);
    EXPECT_EQ(worker->WaitForExit(kTimeout).value_or(-1), 1);
    EXPECT_THAT(worker->output(), HasSubstr(sentence));
  }
}

TEST_F(WorkerTest, FlagsComeFromTheEnvironmentToo) {
  auto worker = *Process::Start(
      kWorker, {},
      {{"LOCKSTEP_MODEL", ModelPath()}, {"LOCKSTEP_PAGE_SIZE", "17"}});
  EXPECT_EQ(worker->WaitForExit(kTimeout).value_or(-1), 1);
  EXPECT_THAT(worker->output(),
              HasSubstr("--page_size is 17; it must be a power of two."));
}

}  // namespace
}  // namespace lockstep
