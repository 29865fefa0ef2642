// The service over a real socket, before a real scheduler and a fake engine.

#include "worker/service/worker_service.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/error_reason.h"
#include "common/grpc_status.h"
#include "tests/testing/fake_leader.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using testing::FakeLeader;
using ::testing::HasSubstr;
using ::testing::Pair;

v1::WorkerGenerateRequest Request(uint32_t max_tokens,
                                  const std::string& request_id = "") {
  v1::WorkerGenerateRequest request;
  if (!request_id.empty()) request.set_request_id(request_id);
  for (uint32_t id = 1; id <= 20; ++id) request.add_prompt_token_ids(id);
  request.mutable_sampling()->set_temperature(0);
  request.mutable_sampling()->set_max_tokens(max_tokens);
  return request;
}

// A Generate call from its first message on.
class Call {
 public:
  Call(FakeLeader& leader, const v1::WorkerGenerateRequest& request,
       std::chrono::milliseconds timeout = std::chrono::minutes(1)) {
    context_.set_deadline(std::chrono::system_clock::now() + timeout);
    reader_ = leader.stub().Generate(&context_, request);
  }

  // The next message; empty at the end.
  v1::WorkerGenerateResponse Next() {
    v1::WorkerGenerateResponse message;
    if (!reader_->Read(&message)) message.Clear();
    return message;
  }

  // Reads to the end. Returns the number of tokens.
  int ReadAll() {
    int tokens = 0;
    v1::WorkerGenerateResponse message;
    while (reader_->Read(&message)) {
      tokens += message.delta().token_ids_size();
      if (message.has_summary()) summary = message.summary();
    }
    return tokens;
  }

  grpc::Status Finish() { return reader_->Finish(); }
  std::string FinishReason() { return ErrorReasonOf(FromGrpc(Finish())); }
  void Cancel() { context_.TryCancel(); }

  v1::Summary summary;

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WorkerGenerateResponse>> reader_;
};

v1::ServerInfo ServerOf(FakeLeader& leader) {
  v1::ServerInfo server;
  grpc::ClientContext context;
  EXPECT_TRUE(leader.stub().GetServerInfo(&context, {}, &server).ok());
  return server;
}

TEST(WorkerService, StreamsARequestToItsSummary) {
  FakeLeader leader;
  Call call(leader, Request(50, "mine"));
  EXPECT_EQ(call.Next().accepted().request_id(), "mine");
  EXPECT_EQ(call.ReadAll(), 50);
  EXPECT_TRUE(call.Finish().ok());
  EXPECT_EQ(call.summary.usage().completion_tokens(), 50);
  EXPECT_EQ(call.summary.usage().prompt_tokens(), 20);
}

TEST(WorkerService, ABadRequestIsRefusedByName) {
  FakeLeader leader;
  Call call(leader, Request(0));
  EXPECT_EQ(call.ReadAll(), 0);
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("max_tokens"));
  EXPECT_EQ(ErrorReasonOf(FromGrpc(status)), "INVALID_REQUEST");
}

TEST(WorkerService, ALiveRequestIdIsTaken) {
  FakeLeader leader;
  leader.set_paused(true);
  Call first(leader, Request(5, "mine"));
  EXPECT_TRUE(first.Next().has_accepted());
  Call second(leader, Request(5, "mine"));
  EXPECT_EQ(second.ReadAll(), 0);
  EXPECT_EQ(second.FinishReason(), "REQUEST_ID_TAKEN");
  leader.set_paused(false);
  EXPECT_EQ(first.ReadAll(), 5);
}

TEST(WorkerService, AFullQueueIsResourceExhausted) {
  FakeLeader leader;
  leader.set_paused(true);
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 4; ++i) {
    calls.push_back(std::make_unique<Call>(leader, Request(5)));
    EXPECT_TRUE(calls.back()->Next().has_accepted());
  }
  Call refused(leader, Request(5));
  EXPECT_EQ(refused.ReadAll(), 0);
  const absl::Status status = FromGrpc(refused.Finish());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrorReasonOf(status), "QUEUE_FULL_REQUESTS");
  EXPECT_THAT(ErrorMetadataOf(status), Contains(Pair("retryable", "true")));
  EXPECT_TRUE(RetryDelayOf(status).has_value());
  v1::WorkerGenerateRequest uncompiled = Request(5);
  uncompiled.mutable_grammar()->set_regex("(");
  Call also_refused(leader, uncompiled);
  EXPECT_EQ(also_refused.FinishReason(), "QUEUE_FULL_REQUESTS");
  leader.set_paused(false);
  for (auto& call : calls) EXPECT_EQ(call->ReadAll(), 5);
}

TEST(WorkerService, ACancelEndsAQueuedRequest) {
  FakeLeader leader;
  leader.set_paused(true);
  Call call(leader, Request(200));
  EXPECT_TRUE(call.Next().has_accepted());
  call.Cancel();
  EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::CANCELLED);
  leader.set_paused(false);
  leader.WaitUntilEmpty();
}

TEST(WorkerService, ACancelEndsARunningRequestAndFreesItsPages) {
  FakeLeader leader;
  Call call(leader, Request(200));
  while (!call.Next().has_delta()) {
  }
  call.Cancel();
  leader.WaitUntilEmpty();
  v1::Load load = leader.board().load();
  EXPECT_EQ(load.running_sequences(), 0);
  EXPECT_EQ(load.free_pages() + load.cached_pages(), load.total_pages());
}

TEST(WorkerService, ADeadlineEndsEvenAQueuedRequest) {
  FakeLeader leader;
  leader.set_paused(true);
  Call call(leader, Request(200), std::chrono::milliseconds(300));
  EXPECT_TRUE(call.Next().has_accepted());
  const auto stream = leader.router().Live().at(0);
  EXPECT_EQ(call.ReadAll(), 0);
  EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  while (stream->status().ok())
    std::this_thread::yield();  // the leader's clock
  leader.set_paused(false);
  leader.WaitUntilEmpty();
  EXPECT_EQ(stream->status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(stream->Description(), HasSubstr("cause=DEADLINE"));
}

TEST(WorkerService, AbortEndsARequestWithAFinish) {
  FakeLeader leader;
  leader.set_paused(true);
  Call call(leader, Request(200, "mine"));
  EXPECT_TRUE(call.Next().has_accepted());
  v1::AbortRequest abort;
  abort.add_request_ids("mine");
  abort.add_request_ids("nobody");
  v1::AbortResponse response;
  grpc::ClientContext context;
  ASSERT_TRUE(leader.stub().Abort(&context, abort, &response).ok());
  EXPECT_THAT(response.unknown(), ::testing::ElementsAre("nobody"));
  leader.set_paused(false);
  v1::WorkerGenerateResponse message = call.Next();
  // The step that had been told of the request already.
  if (message.has_delta()) message = call.Next();
  EXPECT_EQ(message.finish().reason(), v1::ABORTED);
  EXPECT_TRUE(call.Next().has_summary());
  EXPECT_EQ(call.ReadAll(), 0);
  EXPECT_TRUE(call.Finish().ok());
}

TEST(WorkerService, AbortTakesOnlyWhatARequestHas) {
  FakeLeader leader;
  leader.set_paused(true);
  v1::WorkerGenerateRequest request = Request(5, "mine");
  request.mutable_sampling()->set_n(3);
  Call call(leader, request);
  EXPECT_TRUE(call.Next().has_accepted());
  const struct {
    std::vector<std::string> ids;
    std::vector<uint32_t> choices;
    const char* sentence;  // empty: taken
  } kCases[] = {
      {{}, {1}, "choices is given with 0 request_ids, it needs exactly 1."},
      {{"mine"},
       {0, 3},
       "choices[1] is 3, request mine has the choices 0 to 2."},
      {{"(warm-up)"}, {}, "request_ids[0] has the byte 0x28 at offset 0"},
      {{"mine", "\xff"}, {}, "request_ids[1] is no valid UTF-8"},
      {std::vector<std::string>(1025, "a"),
       {},
       "request_ids has 1025 ids, it must have at most 1024."},
      {{"mine"}, std::vector<uint32_t>(1'000'000, 1), ""},
  };
  for (const auto& [ids, choices, sentence] : kCases) {
    v1::AbortRequest abort;
    abort.mutable_request_ids()->Assign(ids.begin(), ids.end());
    abort.mutable_choices()->Assign(choices.begin(), choices.end());
    v1::AbortResponse response;
    grpc::ClientContext context;
    const grpc::Status status = leader.stub().Abort(&context, abort, &response);
    EXPECT_THAT(status.error_message(), HasSubstr(sentence));
    EXPECT_EQ(status.error_code(), *sentence == 0
                                       ? grpc::StatusCode::OK
                                       : grpc::StatusCode::INVALID_ARGUMENT);
  }
  leader.set_paused(false);
  // Choice 1 has at most the tokens of the step that had begun.
  EXPECT_GE(call.ReadAll(), 10);
  EXPECT_LT(call.summary.usage().completion_tokens(), 15);
}

TEST(WorkerService, TextThatIsNoUtf8IsRefusedByName) {
  FakeLeader leader;
  Call call(leader, Request(5, "\xff"));
  EXPECT_EQ(call.ReadAll(), 0);
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(),
              HasSubstr("request_id is no valid UTF-8"));
}

TEST(WorkerService, ACallIsOpenUntilItsClientHasReadItsEnd) {
  FakeLeader leader;
  Call call(leader, Request(50));
  EXPECT_TRUE(call.Next().has_accepted());
  leader.WaitUntilEmpty();
  leader.admission().Close(v1::STOPPING, absl::UnavailableError("stopping."));
  EXPECT_EQ(call.ReadAll(), 50);
  EXPECT_TRUE(call.Finish().ok());
  leader.admission().WaitForCalls();
}

TEST(WorkerService, ASlowReaderEndsResourceExhausted) {
  FakeLeader leader({.stream = {.max_buffered_positions = 8}});
  leader.set_paused(true);
  Call call(leader, Request(200));
  EXPECT_TRUE(call.Next().has_accepted());
  // Nobody takes tokens while the call is not woken: as with a full window.
  const auto stream = leader.router().Live().at(0);
  for (uint32_t i = 0; i < 9; ++i) {
    leader.router().OnToken({.request = stream->number()}, i, {});
  }
  leader.set_paused(false);
  call.ReadAll();
  EXPECT_EQ(call.FinishReason(), "SLOW_READER");
  leader.WaitUntilEmpty();
}

TEST(WorkerService, DrainLetsNobodyInAndUndrainDoes) {
  FakeLeader leader;
  leader.set_paused(true);
  Call live(leader, Request(5));
  EXPECT_TRUE(live.Next().has_accepted());
  v1::DrainResponse drained;
  grpc::ClientContext drain_context;
  ASSERT_TRUE(leader.stub().Drain(&drain_context, {}, &drained).ok());
  EXPECT_EQ(drained.state(), v1::DRAINING);
  EXPECT_EQ(drained.live_requests(), 1);
  EXPECT_EQ(ServerOf(leader).state(), v1::DRAINING);
  Call refused(leader, Request(5));
  EXPECT_EQ(refused.ReadAll(), 0);
  EXPECT_EQ(refused.FinishReason(), "WORKER_DRAINING");
  leader.set_paused(false);
  EXPECT_EQ(live.ReadAll(), 5);
  EXPECT_TRUE(live.Finish().ok());

  v1::DrainResponse back;
  grpc::ClientContext undrain_context;
  ASSERT_TRUE(leader.stub().Undrain(&undrain_context, {}, &back).ok());
  EXPECT_EQ(back.state(), v1::SERVING);
  Call again(leader, Request(5));
  EXPECT_EQ(again.ReadAll(), 5);
}

TEST(WorkerService, DrainRefusesATimeoutOutOfRange) {
  FakeLeader leader;
  v1::DrainRequest request;
  request.set_timeout_ms(86'400'001);
  v1::DrainResponse response;
  grpc::ClientContext context;
  EXPECT_EQ(leader.stub().Drain(&context, request, &response).error_message(),
            "timeout_ms is 86400001; it must be 0 to 86400000.");
  EXPECT_EQ(ServerOf(leader).state(), v1::SERVING);
}

TEST(WorkerService, CountsRequestsByTheirEnd) {
  FakeLeader leader;
  Call completed(leader, Request(5));
  EXPECT_EQ(completed.ReadAll(), 5);
  EXPECT_TRUE(completed.Finish().ok());
  leader.set_paused(true);
  Call cancelled(leader, Request(5)), taken(leader, Request(5, "mine"));
  EXPECT_TRUE(cancelled.Next().has_accepted());
  EXPECT_TRUE(taken.Next().has_accepted());
  Call refused(leader, Request(5, "mine"));
  EXPECT_EQ(refused.ReadAll(), 0);
  cancelled.Cancel();
  v1::AbortRequest abort;
  abort.add_request_ids("mine");
  v1::AbortResponse aborted;
  grpc::ClientContext context;
  ASSERT_TRUE(leader.stub().Abort(&context, abort, &aborted).ok());
  leader.set_paused(false);
  taken.ReadAll();
  EXPECT_TRUE(taken.Finish().ok());
  leader.admission().Close(v1::STOPPING, absl::UnavailableError("stopping."));
  leader.admission().WaitForCalls();
  const v1::RequestCounts counts = ServerOf(leader).requests();
  EXPECT_EQ(counts.accepted(), 3);
  EXPECT_EQ(counts.refused(), 1);
  EXPECT_EQ(counts.completed(), 1);
  EXPECT_EQ(counts.client_cancelled(), 1);
  EXPECT_EQ(counts.abort_call(), 1);
  // The cancelled one may have come to its end before the leader knew.
  EXPECT_GE(counts.choices_length(), 1);
  EXPECT_EQ(counts.choices_length() + counts.choices_ended_early(), 3);
}

TEST(WorkerService, SaysWhatItServes) {
  FakeLeader leader;
  v1::ModelInfo model;
  grpc::ClientContext model_context;
  ASSERT_TRUE(leader.stub().GetModelInfo(&model_context, {}, &model).ok());
  EXPECT_EQ(model.name(), "fake");
  EXPECT_EQ(ServerOf(leader).num_pages(), FakeLeader::kPages);
  EXPECT_EQ(ServerOf(leader).state(), v1::SERVING);
}

TEST(WorkerService, AnUnknownFieldIsRefused) {
  FakeLeader leader;
  v1::GetModelInfoRequest request;
  request.GetReflection()->MutableUnknownFields(&request)->AddVarint(99, 1);
  v1::ModelInfo model;
  grpc::ClientContext context;
  const grpc::Status status =
      leader.stub().GetModelInfo(&context, request, &model);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("99"));
}

TEST(WorkerService, WatchLoadSendsAtOnceAndAfterAChange) {
  FakeLeader leader;
  v1::WatchLoadRequest request;
  request.set_interval_ms(10);
  grpc::ClientContext context;
  auto reader = leader.stub().WatchLoad(&context, request);
  v1::Load load;
  ASSERT_TRUE(reader->Read(&load));
  EXPECT_EQ(load.step(), 0);
  Call call(leader, Request(5));
  EXPECT_EQ(call.ReadAll(), 5);
  while (load.step() < 5) ASSERT_TRUE(reader->Read(&load));
  EXPECT_EQ(load.total_pages(), FakeLeader::kPages);
  EXPECT_EQ(load.state(), v1::SERVING);
  // Without a change it comes all the same.
  ASSERT_TRUE(reader->Read(&load));
  context.TryCancel();
  while (reader->Read(&load)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST(WorkerService, WatchLoadRefusesAnIntervalOutOfRange) {
  FakeLeader leader;
  v1::WatchLoadRequest request;
  request.set_interval_ms(9);
  grpc::ClientContext context;
  auto reader = leader.stub().WatchLoad(&context, request);
  v1::Load load;
  EXPECT_FALSE(reader->Read(&load));
  EXPECT_EQ(reader->Finish().error_message(),
            "interval_ms is 9; it must be 10 to 10000.");
}

}  // namespace
}  // namespace lockstep
