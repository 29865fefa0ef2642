#include "frontend/routing/worker_monitor.h"

#include <absl/strings/str_cat.h>
#include <absl/synchronization/mutex.h>
#include <gtest/gtest.h>

#include "common/error_reason.h"
#include "frontend/routing/worker_client.h"
#include "tests/testing/fake_worker.h"

namespace lockstep {
namespace {

using ::lockstep::testing::FakeWorker;

constexpr uint32_t kVocabularySize = 259;
const TokenizerIdentity kTokenizer = {.vocabulary_size = kVocabularySize};

// Counts how often readiness turned, and waits for it.
class Turns {
 public:
  void Add() {
    absl::MutexLock lock(&mutex_);
    ++turns_;
  }
  void WaitFor(int number) {
    const auto are_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return turns_ >= number;
    };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&are_there));
  }

 private:
  absl::Mutex mutex_;
  int turns_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(WorkerMonitor, FollowsAWorkerThatComesAndGoes) {
  FakeWorker worker;
  worker.model_info().set_fingerprint("bits");
  worker.Start();  // for its address
  worker.Stop();
  WorkerClient client(worker.address());
  WorkerMonitor monitor(&client, kTokenizer);
  Turns turns;
  monitor.Start([&] { turns.Add(); });
  const auto unreachable = MakeError(
      ErrorReason::kWorkerUnreachable,
      absl::StrCat(
          "the worker at ", worker.address(),
          " cannot be reached; start it, or name another with --workers."));
  EXPECT_EQ(monitor.Model().status().code(), absl::StatusCode::kUnavailable);

  worker.Start();
  turns.WaitFor(1);
  ASSERT_TRUE(monitor.Model().ok()) << monitor.Model().status();
  EXPECT_EQ(monitor.Model()->name, "fake");
  EXPECT_EQ(monitor.Model()->max_context_tokens, 100);
  EXPECT_EQ(monitor.Model()->vocabulary_size, kVocabularySize);
  EXPECT_EQ(monitor.Model()->fingerprint, "bits");
  EXPECT_EQ(monitor.Model()->version, "fake");
  EXPECT_EQ(monitor.Model()->kv_capacity_tokens, 1600);

  worker.SetServing(false);
  turns.WaitFor(2);
  EXPECT_EQ(ErrorReasonOf(monitor.Model().status()), "UNAVAILABLE");
  worker.SetServing(true);
  turns.WaitFor(3);

  worker.Stop();
  turns.WaitFor(4);
  EXPECT_EQ(monitor.Model().status(), unreachable);
  worker.model_info().set_name("other");
  worker.Start();
  turns.WaitFor(5);
  EXPECT_EQ(monitor.Model()->name, "other");
}

TEST(WorkerMonitor, KnowsWhyAWorkerDoesNotServe) {
  const struct {
    v1::ServingState state;
    const char* reason;
    const char* why;
  } kCases[] = {
      {v1::STARTING, "WORKER_STARTING", "it is starting"},
      {v1::DRAINING, "WORKER_DRAINING", "it is draining"},
      {v1::STOPPING, "WORKER_DRAINING", "it is shutting down"},
      {v1::FAILED, "GROUP_FAILED", "a rank failed"},
  };
  for (const auto& c : kCases) {
    FakeWorker worker;
    worker.server_info().set_state(c.state);
    worker.Start();
    WorkerClient client(worker.address());
    Turns turns;
    WorkerMonitor monitor(&client, kTokenizer);
    monitor.Start([&] { turns.Add(); });
    turns.WaitFor(1);
    worker.SetServing(false);
    turns.WaitFor(2);
    const absl::Status status = monitor.Model().status();
    EXPECT_EQ(ErrorReasonOf(status), c.reason);
    EXPECT_EQ(status.message(), absl::StrCat("the worker at ", worker.address(),
                                             " is not ready: ", c.why, "."));
  }
}

TEST(WorkerMonitor, AModelThatIsNotTheTokenizersIsNeverReady) {
  for (const uint32_t vocabulary : {259, 5097}) {  // too few, too many
    FakeWorker worker;
    worker.model_info().set_vocabulary_size(vocabulary);
    worker.Start();
    WorkerClient client(worker.address());
    WorkerMonitor monitor(&client, {.vocabulary_size = 1000});
    Turns turns;
    monitor.Start([&] { turns.Add(); });
    worker.WaitForModelInfos(2);  // so what the first said is known
    EXPECT_EQ(
        monitor.Model().status(),
        absl::UnavailableError(absl::StrCat(
            "the worker at ", worker.address(),
            " serves fake with a vocabulary of ", vocabulary,
            " ids, but the tokenizer has 1000; start the gateway with the "
            "--model of the worker.")));
    worker.Stop();
    worker.model_info().set_vocabulary_size(1000);
    worker.Start();
    turns.WaitFor(1);
    EXPECT_TRUE(monitor.Model().ok());
  }
}

TEST(WorkerMonitor, AModelWhoseIdsStandForOtherTextsIsNeverReady) {
  FakeWorker worker;
  worker.model_info().set_tokens_digest("\x01\xff");
  worker.Start();
  WorkerClient client(worker.address());
  WorkerMonitor monitor(&client, {kVocabularySize, "\x02\xff"});
  Turns turns;
  monitor.Start([&] { turns.Add(); });
  worker.WaitForModelInfos(2);  // so what the first said is known
  EXPECT_EQ(monitor.Model().status(),
            absl::UnavailableError(absl::StrCat(
                "the worker at ", worker.address(),
                " serves fake whose token ids stand for other texts (digest "
                "01ff) than the tokenizer's (02ff); start the gateway with the "
                "--model of the worker.")));
  // The tokenizer's own; a worker without one, or of a version that says none.
  for (const char* digest : {"\x02\xff", ""}) {
    worker.Stop();
    worker.model_info().set_tokens_digest(digest);
    worker.Start();
    turns.WaitFor(*digest == 0 ? 3 : 1);
    EXPECT_TRUE(monitor.Model().ok()) << monitor.Model().status();
  }
}

TEST(WorkerMonitor, AWorkerThatDoesNotSayWhatItServesIsQuoted) {
  FakeWorker worker;
  worker.set_model_info_error(absl::PermissionDeniedError("not to you."));
  worker.Start();
  WorkerClient client(worker.address());
  WorkerMonitor monitor(&client, kTokenizer);
  monitor.Start([] {});
  worker.WaitForModelInfos(2);  // so what the first said is known
  EXPECT_EQ(monitor.Model().status(),
            absl::UnavailableError(
                absl::StrCat("the worker at ", worker.address(),
                             " does not say what it serves: not to you.")));
}

TEST(WorkerMonitor, StopsWhileItWaits) {
  WorkerClient client("127.0.0.1:1");
  WorkerMonitor monitor(&client, kTokenizer);
  monitor.Start([] {});
  monitor.Stop();
}

}  // namespace
}  // namespace lockstep
