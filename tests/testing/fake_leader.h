#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <memory>
#include <thread>

#include "common/grpc_server.h"
#include "proto/worker.grpc.pb.h"
#include "tests/testing/fake_engine.h"
#include "worker/grammar/grammar_store.h"
#include "worker/group/request_inbox.h"
#include "worker/scheduler/scheduler.h"
#include "worker/service/admission.h"
#include "worker/service/drain.h"
#include "worker/service/grammar_cache.h"
#include "worker/service/load_board.h"
#include "worker/service/output_router.h"
#include "worker/service/worker_service.h"

namespace lockstep::testing {

// A leader without a group: its service on a free port, before a real scheduler
// and a fake engine, with what its step thread does on a thread of its own.
//
//   FakeLeader leader;
//   leader.stub().Generate(&context, request);
//
// Methods are any thread's.
class FakeLeader {
 public:
  static constexpr int kContext = 256;
  static constexpr int kPages = 64;
  static constexpr uint32_t kVocabularySize = 1000;

  explicit FakeLeader(const Admission::Options& options = {});
  ~FakeLeader();

  v1::Worker::Stub& stub() { return *stub_; }
  int port() const { return server_->port(); }
  Admission& admission() { return admission_; }
  OutputRouter& router() { return router_; }
  Drain& drain() { return drain_; }
  LoadBoard& board() { return board_; }
  // Of the tiny tokenizer. The engine does not heed them.
  GrammarStore& grammar_store() { return store_; }

  // While paused the scheduler is told nothing, so that requests stay queued.
  void set_paused(bool paused);

  // Blocks until no request is live.
  void WaitUntilEmpty();

 private:
  void WaitWhilePaused();
  void RunSteps();

  GrammarStore store_;
  RequestInbox inbox_;  // of 4 requests and 1000 prompt tokens
  OutputRouter router_;
  Drain drain_;
  Admission admission_;
  GrammarCache grammars_;
  LoadBoard board_;
  WorkerService service_;
  Scheduler scheduler_;
  FakeEngine engine_;
  absl::Mutex mutex_;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::Worker::Stub> stub_;
  std::thread steps_;  // "steps"; joined by the destructor
};

}  // namespace lockstep::testing
