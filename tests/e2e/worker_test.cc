// Worker groups as processes: they serve, cancel and drain.

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "common/error_reason.h"
#include "common/grpc_server.h"
#include "common/grpc_status.h"
#include "common/health.grpc.pb.h"
#include "kernels/weights/dtype.h"
#include "proto/worker.grpc.pb.h"
#include "tests/e2e/worker_test_fixture.h"
#include "tests/testing/process.h"
#include "tests/testing/reflection_client.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"

namespace lockstep {
namespace {

using ::grpc::health::v1::HealthCheckResponse;
using ::lockstep::testing::Process;
using ::lockstep::testing::WorkerTest;
using ::testing::Contains;
using ::testing::HasSubstr;

// A client whose connection buffers little: the group is done with its request
// while it has read next to nothing.
class LateReader {
 public:
  explicit LateReader(int port) {
    grpc::ChannelArguments arguments = ChannelArguments();
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
    stub_ = v1::Worker::NewStub(grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials(),
        arguments));
  }

  v1::Worker::Stub& stub() { return *stub_; }

  // About a megabyte of answer.
  static v1::WorkerGenerateRequest Verbose(v1::WorkerGenerateRequest request) {
    request.mutable_sampling()->set_logprobs(20);
    return request;
  }

 private:
  std::unique_ptr<v1::Worker::Stub> stub_;
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

  const v1::ModelInfo model = ModelOf(group);
  EXPECT_EQ(model.name(), "tiny");
  EXPECT_EQ(model.max_context_tokens(), kEndlessTokens + 1000);
}

TEST_F(WorkerTest, TwoRanksGiveTheTokensOfOne) {
  Group one(1), two(2);
  ASSERT_THAT(ServerOf(two).identical_tensor_parallel_sizes(), Contains(1));
  Call at_one(*one.stub, Request(100)), at_two(*two.stub, Request(100));
  EXPECT_TRUE(at_one.ReadToEnd().ok());
  EXPECT_TRUE(at_two.ReadToEnd().ok());
  EXPECT_EQ(at_one.tokens.size(), 100);
  EXPECT_EQ(at_one.tokens, at_two.tokens);
  EXPECT_EQ(ModelOf(one).fingerprint(), ModelOf(two).fingerprint());
}

TEST_F(WorkerTest, RanksThatMeetOverTcpGiveTheTokensOfThoseThatShareMemory) {
  Group memory(4), tcp(4, {"--collective=gloo"});
  EXPECT_EQ(ServerOf(memory).collective(), "shared_memory");
  EXPECT_EQ(ServerOf(tcp).collective(), "gloo");
  EXPECT_THAT(tcp.leader->output(), HasSubstr("gloo collectives"));
  Call over_memory(*memory.stub, Request(50)), over_tcp(*tcp.stub, Request(50));
  EXPECT_TRUE(over_memory.ReadToEnd().ok());
  EXPECT_TRUE(over_tcp.ReadToEnd().ok());
  EXPECT_EQ(over_memory.tokens.size(), 50);
  EXPECT_EQ(over_memory.tokens, over_tcp.tokens);
  EXPECT_EQ(ModelOf(memory).fingerprint(), ModelOf(tcp).fingerprint());
}

// The ranks agree on it, and the group goes on.
TEST_F(WorkerTest, ARequestForWhichTheModelComputesNoNumberEndsAlone) {
  testing::TinyModel tiny;
  tiny.nan_token_id = 50;
  const std::string path = ::testing::TempDir() + "nan.gguf";
  testing::WriteGguf(tiny, path);
  Group group(2, {absl::StrCat("--model=", path)});
  Call alone(*group.stub, Request(20));
  ASSERT_TRUE(alone.ReadToEnd().ok());
  Call beside(*group.stub, Request(20));
  for (const uint32_t choices : {1, 3}) {
    v1::WorkerGenerateRequest request = Request(20);
    request.add_prompt_token_ids(50);
    request.mutable_sampling()->set_n(choices);
    Call bad(*group.stub, request);
    const absl::Status status = FromGrpc(bad.ReadToEnd());
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_EQ(ErrorReasonOf(status), "NOT_FINITE");
    EXPECT_TRUE(bad.tokens.empty());
  }
  EXPECT_TRUE(beside.ReadToEnd().ok());
  EXPECT_EQ(beside.tokens, alone.tokens);
  WaitUntilIdle(group);
}

// The warm-up's id is 0: no rank waits for one that will never serve.
TEST_F(WorkerTest, AModelThatComputesNoNumberInItsWarmUpEndsTheGroup) {
  testing::TinyModel tiny;
  tiny.nan_token_id = 0;
  const std::string path = ::testing::TempDir() + "nan0.gguf";
  testing::WriteGguf(tiny, path);
  for (const int ranks : {1, 2}) {
    auto leader = *testing::Process::Start(
        kWorker, Arguments(ranks, {absl::StrCat("--model=", path)}));
    EXPECT_EQ(leader->WaitForExit(kTimeout).value_or(-1), 1);
    EXPECT_THAT(leader->output(), HasSubstr("of the warm-up"));
  }
}

TEST_F(WorkerTest, SaysWhatItsBitsDependOn) {
  Group strict(1, {"--arithmetic=strict"});
  Group fast(1, {"--arithmetic=fast", "--kv_cache_type=int8"});
  EXPECT_NE(ModelOf(strict).fingerprint(), ModelOf(fast).fingerprint());
  EXPECT_EQ(ServerOf(strict).arithmetic(), "strict");
  EXPECT_EQ(ServerOf(strict).kv_cache_type(), "fp32");
  EXPECT_EQ(ServerOf(fast).arithmetic(), "fast");
  EXPECT_EQ(ServerOf(fast).kv_cache_type(), "int8");
  for (const char* text : {"fast arithmetic", "int8 KV cache"}) {
    EXPECT_THAT(fast.leader->output(), HasSubstr(text));
  }
}

TEST_F(WorkerTest, ACancelFreesThePages) {
  Group group(2);
  Call call(*group.stub, Request(kEndlessTokens));
  ASSERT_TRUE(call.ReadDelta());
  call.Cancel();
  WaitUntilIdle(group);
  call.ReadToEnd();
  EXPECT_EQ(ServerOf(group).requests().client_cancelled(), 1);
}

TEST_F(WorkerTest, ADeadlineEndsARunningRequestAndIsCounted) {
  Group group(2);
  Call call(*group.stub, Request(kEndlessTokens), absl::Seconds(1));
  ASSERT_TRUE(call.ReadDelta());
  EXPECT_EQ(call.ReadToEnd().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  WaitUntilIdle(group);
  EXPECT_EQ(ServerOf(group).requests().deadline(), 1);
  EXPECT_EQ(ServerOf(group).requests().accepted(), 1);
}

// One client stops reading. The others have all their tokens before it reads
// on, and find its pages free.
TEST_F(WorkerTest, ASlowReaderFailsAlone) {
  Group group(2);
  LateReader reader(group.port);
  Call slow(reader.stub(), LateReader::Verbose(Request(kEndlessTokens)));
  ASSERT_TRUE(slow.ReadDelta());
  std::vector<uint32_t> tokens;
  for (int i = 0; i < 3; ++i) {
    Call other(*group.stub, Request(100));
    EXPECT_TRUE(other.ReadToEnd().ok());
    EXPECT_EQ(other.tokens.size(), 100);
    if (i > 0) {
      EXPECT_EQ(other.tokens, tokens);
    }
    tokens = other.tokens;
  }
  WaitUntilIdle(group);
  EXPECT_EQ(ErrorReasonOf(FromGrpc(slow.ReadToEnd())), "SLOW_READER");
  EXPECT_LT(slow.tokens.size(), kEndlessTokens);
  EXPECT_EQ(ServerOf(group).requests().slow_reader(), 1);
  EXPECT_EQ(ServerOf(group).requests().completed(), 3);
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

TEST_F(WorkerTest, ADrainFinishesTheStreamsAndLetsNobodyIn) {
  Group group(2);
  Call call(*group.stub, Request(2000));
  ASSERT_TRUE(call.ReadDelta());
  kill(group.followers[0], SIGTERM);  // has no effect
  group.leader->Signal(SIGTERM);
  ASSERT_TRUE(group.leader->WaitForLine("draining: ", kTimeout).ok());
  Call late(*group.stub, Request(1));
  const grpc::Status refused = late.ReadToEnd();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("draining"));
  EXPECT_EQ(group.Health(""), HealthCheckResponse::NOT_SERVING);
  EXPECT_TRUE(call.ReadToEnd().ok());
  EXPECT_EQ(call.tokens.size(), 2000);
  group.ExpectGone(/*exit_code=*/0, kTimeout);
}

TEST_F(WorkerTest, ADrainWaitsForAClientThatReadsLate) {
  Group group(2);
  LateReader reader(group.port);
  Call call(reader.stub(), LateReader::Verbose(Request(3000)));
  ASSERT_TRUE(call.ReadDelta());
  group.leader->Signal(SIGTERM);
  EXPECT_TRUE(testing::WaitUntilGone(group.followers[0], kTimeout));
  EXPECT_TRUE(call.ReadToEnd().ok());
  EXPECT_EQ(call.tokens.size(), 3000);
  group.ExpectGone(/*exit_code=*/0, kTimeout);
}

TEST_F(WorkerTest, TheGraceOfADrainBoundsTheWaitForAClient) {
  Group group(2, {"--drain_timeout=2"});
  LateReader reader(group.port);
  Call call(reader.stub(), LateReader::Verbose(Request(3000)));
  ASSERT_TRUE(call.ReadDelta());
  group.leader->Signal(SIGTERM);
  group.ExpectGone(/*exit_code=*/0, kTimeout);  // though nobody reads
  EXPECT_EQ(call.ReadToEnd().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(WorkerTest, ASecondSignalEndsTheDrain) {
  Group group(2);
  Call call(*group.stub, Request(kEndlessTokens));
  ASSERT_TRUE(call.ReadDelta());
  group.leader->Signal(SIGINT);
  ASSERT_TRUE(group.leader->WaitForLine("draining: ", kTimeout).ok());
  group.leader->Signal(SIGINT);
  const grpc::Status status = call.ReadToEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("shut down"));
  group.ExpectGone(/*exit_code=*/0, kTimeout);
}

// However late one comes.
TEST_F(WorkerTest, SignalsThatDoNotCeaseEndAGroupAsOneDoes) {
  Group group(2);
  absl::StatusOr<int> code;
  do {
    group.leader->Signal(SIGTERM);
    code = group.leader->WaitForExit(absl::Milliseconds(50));
  } while (absl::IsDeadlineExceeded(code.status()));
  EXPECT_EQ(code.value_or(-1), 0);
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
       "worker: --max_context (or --max_model_len) is 100000; the model "
       "takes at most 61000 tokens."},
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

// Small in a file, a terabyte and more in a step.
TEST_F(WorkerTest, RefusesAModelThatNeedsMoreMemoryThanThereIs) {
  testing::TinyModel model;
  model.hidden_size = 32;
  model.intermediate_size = 1 << 17;
  model.num_layers = 1;
  model.type = kernels::DType::kBF16;
  const std::string path = ::testing::TempDir() + "wide.gguf";
  testing::WriteGguf(model, path);
  auto worker = *Process::Start(
      kWorker, {absl::StrCat("--model=", path), "--max_step_tokens=1048576",
                "--kv_cache_memory=1MiB"});
  EXPECT_EQ(worker->WaitForExit(kTimeout).value_or(-1), 1);
  EXPECT_THAT(worker->output(), HasSubstr("worker: the model does not fit"));
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
