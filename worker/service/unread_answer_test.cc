// A call whose answer is complete and whose client does not read it.

#include <absl/strings/str_cat.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "common/grpc_server.h"
#include "proto/worker.grpc.pb.h"
#include "tests/testing/fake_leader.h"

namespace lockstep {
namespace {

using testing::FakeLeader;

// Of a connection that buffers little.
std::unique_ptr<v1::Worker::Stub> NarrowStub(const FakeLeader& leader) {
  grpc::ChannelArguments arguments = ChannelArguments();
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
  return v1::Worker::NewStub(
      grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", leader.port()),
                                grpc::InsecureChannelCredentials(), arguments));
}

// Most of a megabyte of answer.
v1::WorkerGenerateRequest Verbose() {
  v1::WorkerGenerateRequest request;
  for (uint32_t id = 1; id <= 20; ++id) request.add_prompt_token_ids(id);
  v1::SamplingParams& sampling = *request.mutable_sampling();
  sampling.set_max_tokens(200);
  sampling.set_n(16);
  sampling.set_logprobs(20);
  return request;
}

TEST(UnreadAnswer, EndsItsCallAfterATime) {
  FakeLeader leader(
      {.stream = {}, .read_timeout = std::chrono::milliseconds(50)});
  const auto stub = NarrowStub(leader);
  grpc::ClientContext context;
  const auto reader = stub->Generate(&context, Verbose());
  v1::WorkerGenerateResponse message;
  ASSERT_TRUE(reader->Read(&message));
  leader.WaitUntilEmpty();
  leader.admission().Close(v1::STOPPING, absl::UnavailableError("stopping."));
  leader.admission().WaitForCalls();
  EXPECT_EQ(leader.admission().counts().slow_reader(), 1);
  while (reader->Read(&message)) EXPECT_FALSE(message.has_summary());
  EXPECT_FALSE(reader->Finish().ok());
}

}  // namespace
}  // namespace lockstep
