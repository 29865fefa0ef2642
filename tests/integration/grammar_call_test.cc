// Generate calls with a grammar: compiled, or refused, before they are let in.

#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "proto/worker.grpc.pb.h"
#include "tests/testing/fake_leader.h"
#include "tests/testing/grammar/tiny_token_bytes.h"

namespace lockstep {
namespace {

using ::lockstep::testing::FakeLeader;
using ::testing::HasSubstr;

v1::WorkerGenerateRequest Request(const std::string& regex) {
  v1::WorkerGenerateRequest request;
  request.add_prompt_token_ids(5);
  request.mutable_sampling()->set_max_tokens(3);
  request.mutable_grammar()->set_regex(regex);
  return request;
}

grpc::Status Generate(FakeLeader& leader,
                      const v1::WorkerGenerateRequest& request) {
  grpc::ClientContext context;
  const auto reader = leader.stub().Generate(&context, request);
  v1::WorkerGenerateResponse response;
  while (reader->Read(&response)) continue;
  return reader->Finish();
}

TEST(GrammarCall, AGoodGrammarIsLetIn) {
  FakeLeader leader;
  for (const char* regex : {"a+", "a+", "b"}) {
    EXPECT_TRUE(Generate(leader, Request(regex)).ok());
  }
  EXPECT_EQ(leader.admission().counts().accepted(), 3);
}

TEST(GrammarCall, ABadOneIsRefusedBeforeItIsQueued) {
  FakeLeader leader;
  const grpc::Status refused = Generate(leader, Request("("));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(),
              HasSubstr("grammar.regex is refused: "));
  EXPECT_EQ(leader.admission().counts().accepted(), 0);
}

TEST(GrammarCall, WhatIsResumedMustBeOfTheGrammar) {
  FakeLeader leader;
  v1::WorkerGenerateRequest request = Request("ab*");
  request.add_resume_token_ids(testing::TinyIds("a")[0]);
  EXPECT_TRUE(Generate(leader, request).ok());
  request.add_resume_token_ids(testing::TinyIds("a")[0]);
  const grpc::Status refused = Generate(leader, request);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("as token 1 of choice 0"));
}

TEST(GrammarCall, TheEndOfTextMustBeOne) {
  FakeLeader leader;
  v1::WorkerGenerateRequest request = Request("a");
  request.mutable_sampling()->set_ignore_eos(true);
  EXPECT_THAT(Generate(leader, request).error_message(),
              HasSubstr("sampling.ignore_eos is true"));
  request = Request("a");
  request.mutable_grammar()->clear_kind();
  EXPECT_THAT(Generate(leader, request).error_message(),
              HasSubstr("grammar is empty"));
}

// A client that hangs up meanwhile leaves nothing behind.
TEST(GrammarCall, MayBeCancelledWhileItIsCompiled) {
  absl::Notification go_on;
  FakeLeader leader;
  v1::Grammar other;
  for (const uint64_t number : {1000, 1001}) {
    other.set_regex("x");
    leader.grammar_store().Prepare(number, other, [&](const absl::Status&) {
      go_on.WaitForNotification();
    });
  }
  grpc::ClientContext context;
  const auto reader = leader.stub().Generate(&context, Request("a+"));
  context.TryCancel();
  v1::WorkerGenerateResponse response;
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  go_on.Notify();
  EXPECT_TRUE(Generate(leader, Request("a+")).ok());
  leader.WaitUntilEmpty();
}

}  // namespace
}  // namespace lockstep
