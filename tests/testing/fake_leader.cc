#include "tests/testing/fake_leader.h"

#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <string>
#include <vector>

#include "tests/testing/grammar/tiny_token_bytes.h"

namespace lockstep::testing {
namespace {

WorkerService::Facts MakeFacts() {
  WorkerService::Facts facts;
  facts.limits = {.vocabulary_size = FakeLeader::kVocabularySize,
                  .max_context = FakeLeader::kContext,
                  .eos_token_ids = {}};
  facts.model.set_name("fake");
  v1::EmbeddingInfo& embedding = *facts.model.mutable_embedding();
  embedding.set_pooling(v1::LAST_TOKEN);
  embedding.set_dimensions(8);
  embedding.add_fewer_dimensions(4);
  facts.limits.embedding = embedding;
  facts.server.set_num_pages(FakeLeader::kPages);
  return facts;
}

}  // namespace

FakeLeader::FakeLeader(const Admission::Options& options)
    : store_(MakeTinyTokenBytes(),
             {.vocab_size = kVocabularySize, .eos_token_ids = {kTinyEos}}),
      inbox_({.max_queued_requests = 4, .max_queued_tokens = 1000}),
      router_(&inbox_),
      drain_(&admission_, &router_, &inbox_),
      admission_(&inbox_, &router_, options),
      grammars_(&store_, &inbox_, &admission_.timers(), {}),
      board_(&inbox_),
      service_(MakeFacts(), &admission_, &router_, &board_, &drain_,
               &grammars_),
      scheduler_({.num_pages = kPages, .max_context = kContext}, &router_),
      engine_({.num_pages = kPages, .vocabulary_size = kVocabularySize}) {
  admission_.Open();
  server_ = *GrpcServer::Start("127.0.0.1:0", "listen", {&service_},
                               {v1::Worker::service_full_name()});
  stub_ = v1::Worker::NewStub(grpc::CreateCustomChannel(
      absl::StrCat("127.0.0.1:", server_->port()),
      grpc::InsecureChannelCredentials(), ChannelArguments()));
  steps_ = std::thread([this] { RunSteps(); });
  pthread_setname_np(steps_.native_handle(), "steps");
}

FakeLeader::~FakeLeader() {
  set_paused(false);
  inbox_.Stop();
  steps_.join();
  server_->Shutdown(/*grace_ms=*/0);
}

void FakeLeader::set_paused(bool paused) {
  absl::MutexLock lock(&mutex_);
  paused_ = paused;
}

void FakeLeader::WaitUntilEmpty() {
  absl::Notification empty;
  router_.WhenEmpty([&] { empty.Notify(); });
  empty.WaitForNotification();
}

void FakeLeader::WaitWhilePaused() {
  absl::MutexLock lock(&mutex_);
  const auto may_run = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !paused_;
  };
  mutex_.Await(absl::Condition(&may_run));
}

void FakeLeader::RunSteps() {
  StepResult result;
  while (true) {
    std::vector<std::string> messages;
    ASSERT_TRUE(
        inbox_.Drain(!scheduler_.HasWork(), /*max_messages=*/100, &messages)
            .ok());
    WaitWhilePaused();
    for (const std::string& bytes : messages) {
      v1::RankMessage message;
      ASSERT_TRUE(message.ParseFromString(bytes));
      if (message.has_stop()) return;
      if (message.has_prepare_grammar() || message.has_release_grammar()) {
        continue;  // the cache has told the store
      }
      ASSERT_TRUE(scheduler_.Apply(message).ok());
    }
    const StepPlan& plan = scheduler_.Plan();
    result.spans.clear();
    if (!plan.empty()) {
      ASSERT_TRUE(engine_.Execute(plan, &result).ok());
    }
    scheduler_.Commit(result);
    board_.Publish(scheduler_.stats());
    router_.EndStep();
  }
}

}  // namespace lockstep::testing
