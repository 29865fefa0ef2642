// The worker's service over a real socket, asked for embeddings, before a real
// scheduler and a fake engine.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <vector>

#include "proto/worker.pb.h"
#include "tests/testing/fake_engine.h"
#include "tests/testing/fake_leader.h"

namespace lockstep {
namespace {

using testing::FakeLeader;

v1::WorkerGenerateRequest Request(int num_tokens) {
  v1::WorkerGenerateRequest request;
  for (int id = 1; id <= num_tokens; ++id) request.add_prompt_token_ids(id);
  request.mutable_embedding();
  return request;
}

struct Outcome {
  std::vector<v1::WorkerGenerateResponse> messages;
  grpc::Status status;
};

Outcome Call(FakeLeader& leader, const v1::WorkerGenerateRequest& request) {
  Outcome outcome;
  grpc::ClientContext context;
  const auto reader = leader.stub().Generate(&context, request);
  v1::WorkerGenerateResponse message;
  while (reader->Read(&message)) outcome.messages.push_back(message);
  outcome.status = reader->Finish();
  return outcome;
}

TEST(EmbeddingCall, IsAnsweredWithOneEmbeddingAndNoToken) {
  FakeLeader leader;
  v1::WorkerGenerateRequest request = Request(20);
  request.mutable_embedding()->set_dimensions(4);
  const Outcome outcome = Call(leader, request);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.error_message();
  ASSERT_EQ(outcome.messages.size(), 3);
  EXPECT_EQ(outcome.messages[0].accepted().prompt_tokens(), 20);
  v1::ResolvedEmbedding wanted;
  wanted.set_pooling(v1::LAST_TOKEN);
  wanted.set_dimensions(4);
  EXPECT_THAT(outcome.messages[1].embedding().values(),
              ::testing::ElementsAreArray(
                  FakeEmbedding(request.prompt_token_ids(), wanted)));
  const v1::Usage& usage = outcome.messages[2].summary().usage();
  EXPECT_EQ(usage.prompt_tokens(), 20);
  EXPECT_EQ(usage.completion_tokens(), 0);
}

TEST(EmbeddingCall, IsCountedAsCompleted) {
  FakeLeader leader;
  Call(leader, Request(3));
  leader.WaitUntilEmpty();
  leader.admission().Close(v1::STOPPING, absl::UnavailableError("the end."));
  leader.admission().WaitForCalls();
  EXPECT_EQ(leader.admission().counts().completed(), 1);
  EXPECT_EQ(leader.admission().counts().choices_stop(), 1);
}

TEST(EmbeddingCall, AnInputMayFillTheContextAndNoMore) {
  FakeLeader leader;
  EXPECT_TRUE(Call(leader, Request(FakeLeader::kContext)).status.ok());
  EXPECT_EQ(Call(leader, Request(FakeLeader::kContext + 1)).status.error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(EmbeddingCall, DimensionsThatTheModelDoesNotHaveAreRefused) {
  FakeLeader leader;
  v1::WorkerGenerateRequest request = Request(3);
  request.mutable_embedding()->set_dimensions(5);
  EXPECT_EQ(Call(leader, request).status.error_message(),
            "embedding.dimensions is 5, it must be one of 4 and 8.");
}

}  // namespace
}  // namespace lockstep
