// The leader's steps, once all shapes were seen: no memory is allocated and no
// lock taken for a sequence, from the frame to the hand-over of tokens. The
// whole loop runs here, over a small model and without gRPC; this program
// replaces malloc and the locks to count.

#include <absl/base/config.h>
#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/ops.h"
#include "kernels/threads/thread_pool.h"
#include "proto/group.pb.h"
#include "proto/worker.pb.h"
#include "tests/testing/tiny_model.h"
#include "worker/collectives/single_collective.h"
#include "worker/engine/model_engine.h"
#include "worker/group/group_failure.h"
#include "worker/group/leader_source.h"
#include "worker/group/membership.h"
#include "worker/group/request_inbox.h"
#include "worker/model_spec/shard.h"
#include "worker/runtime/rank_loop.h"
#include "worker/runtime/step_meter.h"
#include "worker/scheduler/scheduler.h"
#include "worker/service/admission.h"
#include "worker/service/load_board.h"
#include "worker/service/output_router.h"
#include "worker/service/output_stream.h"
#include "worker/service/request_meters.h"
#include "worker/weights/model_files.h"

namespace {

// What the threads of a step do. The thread "streams" and the test's own are
// not among them.
std::atomic<int64_t> allocations = 0;
std::atomic<int64_t> locks = 0;
thread_local bool is_outside = false;

[[maybe_unused]] void Count(std::atomic<int64_t>& what) {
  if (!is_outside) what.fetch_add(1, std::memory_order_relaxed);
}

// The definition that this program's own hides.
template <typename Function>
Function Hidden(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#if !defined(ABSL_HAVE_ADDRESS_SANITIZER) && \
    !defined(ABSL_HAVE_THREAD_SANITIZER)
constexpr bool kCounts = true;

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  Count(allocations);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  Count(allocations);
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  Count(allocations);
  return __libc_realloc(memory, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  Count(allocations);
  return __libc_memalign(alignment, size);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static const auto hidden =
      Hidden<int (*)(pthread_mutex_t*)>("pthread_mutex_lock");
  Count(locks);
  return hidden(mutex);
}
}

void absl::Mutex::Lock() {
  static const auto hidden =
      Hidden<void (*)(absl::Mutex*)>("_ZN4absl7debian35Mutex4LockEv");
  Count(locks);
  hidden(this);
}
#else
constexpr bool kCounts = false;  // the sanitizer has its own
#endif

namespace lockstep {
namespace {

constexpr int kSequences = 32;
constexpr int kMaxTokens = 200;
constexpr int kPromptTokens = 8;
constexpr int kPageSize = 16;
constexpr int kContext = 256;

// A group's only rank, as main.cc makes it of these parts.
class Leader {
 public:
  explicit Leader(const ModelFiles& model)
      : pool_({.num_threads = 2}),
        ops_(*kernels::Ops::Create("auto", &pool_)),
        engine_(*ModelEngine::Create(
            model, *MakeShard(model.config, model.row_parallel_blocks, 0, 1),
            {.num_pages = scheduler_.num_pages,
             .page_size = scheduler_.page_size,
             .max_step_tokens = scheduler_.max_step_tokens,
             .max_sequences = scheduler_.max_sequences,
             .max_logits_rows = scheduler_.max_logits_rows},
            &ops_, &collective_)) {
    admission_.Open();
  }

  // Calls `on_step_end` after all else that a leader does then.
  void Run(const std::function<void(const SchedulerStats&)>& on_step_end) {
    const absl::Status status =
        RunRankLoop({.scheduler = scheduler_,
                     .source = &source_,
                     .engine = engine_.get(),
                     .sink = &router_,
                     .failure = &failure_,
                     .step_timeout = absl::Minutes(5),
                     .on_step_end =
                         [&](const SchedulerStats& stats) {
                           board_.Publish(stats);
                           router_.EndStep();
                           on_step_end(stats);
                         },
                     .meter = &step_meter_});
    EXPECT_TRUE(status.ok()) << status;
  }

  Admission& admission() { return admission_; }
  RequestInbox& inbox() { return inbox_; }

 private:
  const SchedulerOptions scheduler_ = {
      .num_pages = (kSequences + 1) * kContext / kPageSize,
      .page_size = kPageSize,
      .max_step_tokens = 512,
      .max_sequences = kSequences,
      .max_logits_rows = kSequences,
      .max_context = kContext};
  kernels::ThreadPool pool_;
  kernels::Ops ops_;
  SingleCollective collective_;
  const std::unique_ptr<ModelEngine> engine_;
  RequestMeters request_meters_;
  StepMeter step_meter_;
  RequestInbox inbox_{
      {.max_queued_requests = 2 * kSequences, .max_queued_tokens = 10'000}};
  OutputRouter router_{&inbox_};
  Admission admission_{
      &inbox_, &router_, {.stream = {.meters = &request_meters_}}};
  LoadBoard board_{&inbox_};
  GroupFailure failure_{{}};
  LeaderSource source_{Membership(), &inbox_, &failure_};
};

// Each mode of sampling, in turn.
v1::AddRequest Request(int index) {
  v1::AddRequest request;
  for (int i = 0; i < kPromptTokens; ++i) {
    request.add_prompt_token_ids(3 + (index * 31 + i * 7) % 500);
  }
  v1::ResolvedSampling& sampling = *request.mutable_sampling();
  sampling.set_n(1);
  sampling.set_max_tokens(kMaxTokens);
  sampling.set_top_p(index % 4 == 1 ? 0.9f : 1);
  sampling.set_top_k(index % 4 == 2 ? 40 : 0);
  sampling.set_temperature(index % 4 == 0 ? 0 : 0.8f);
  sampling.set_repetition_penalty(index % 3 == 0 ? 1.1f : 1);
  sampling.set_seed(index);
  return request;
}

// Reads a stream as a call does, on the thread "streams".
class Reader {
 public:
  explicit Reader(std::shared_ptr<OutputStream> stream)
      : stream_(std::move(stream)) {
    stream_->set_reader([this] { Read(); });
    stream_->Wake();
  }
  ~Reader() { stream_->set_reader(nullptr); }

  int WaitForTokens() {
    ended_.WaitForNotification();
    return num_tokens_;
  }

 private:
  void Read() {
    is_outside = true;
    v1::WorkerGenerateResponse message;
    OutputStream::Next next;
    while ((next = stream_->Take(&message)) == OutputStream::Next::kMessage) {
      num_tokens_ += message.delta().token_ids_size();
    }
    if (next == OutputStream::Next::kEnd && !ended_.HasBeenNotified()) {
      ended_.Notify();
    }
  }

  const std::shared_ptr<OutputStream> stream_;
  int num_tokens_ = 0;
  absl::Notification ended_;
};

// Of steps that compute one token of each sequence, and nothing else.
struct SteadySteps {
  int count = 0;
  int64_t allocations = 0;
  int64_t most_locks = 0;  // of a step
};

SteadySteps ServeOneBatch(Leader& leader) {
  std::vector<std::unique_ptr<Reader>> readers;
  for (int i = 0; i < kSequences; ++i) {
    auto stream = leader.admission().Submit("", Request(i));
    EXPECT_TRUE(stream.ok()) << stream.status();
    readers.push_back(std::make_unique<Reader>(*std::move(stream)));
  }
  SteadySteps steady;
  std::thread steps([&] {
    constexpr int kWarmUp = 20;
    int64_t allocations_before = 0, locks_before = 0;
    int steps_of_all = 0;
    leader.Run([&](const SchedulerStats& stats) {
      const bool has_all = stats.running_sequences == kSequences;
      steps_of_all = has_all ? steps_of_all + 1 : 0;
      if (steps_of_all > kWarmUp) {
        ++steady.count;
        steady.allocations += allocations - allocations_before;
        steady.most_locks =
            std::max<int64_t>(steady.most_locks, locks - locks_before);
      }
      allocations_before = allocations;
      locks_before = locks;
    });
  });
  for (const auto& reader : readers) {
    EXPECT_EQ(reader->WaitForTokens(), kMaxTokens);
  }
  leader.inbox().Stop();
  steps.join();
  return steady;
}

TEST(SteadyStep, AllocatesNothingAndTakesThreeLocks) {
  is_outside = true;
  const std::string folder = ::testing::TempDir() + "steady-model";
  testing::WriteHuggingFaceFolder({}, folder);
  const auto model = OpenModel(folder);
  ASSERT_TRUE(model.ok()) << model.status();
  Leader leader(*model);
  const SteadySteps steady = ServeOneBatch(leader);
  EXPECT_GT(steady.count, kMaxTokens / 2);
  if (!kCounts) GTEST_SKIP() << "the sanitizer has its own malloc";
  EXPECT_GT(allocations, 0) << "nothing is counted";
  EXPECT_EQ(steady.allocations, 0);
  // What came in, what goes out, and the load: one lock each, whatever the
  // number of sequences.
  EXPECT_EQ(steady.most_locks, 3);
}

}  // namespace
}  // namespace lockstep
