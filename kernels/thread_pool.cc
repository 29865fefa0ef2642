#include "kernels/thread_pool.h"

#include <glog/logging.h>
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::kernels {
namespace {

// A wake-up from the kernel costs tens of microseconds, a step's gaps are
// shorter than this.
constexpr std::chrono::microseconds kSpin{1000};
constexpr int kPausesBetweenClockReads = 256;

// How many ranges a worker gets to take, so that a slow core delays the others
// by a fraction of its share.
constexpr int64_t kRangesPerWorker = 8;

void NameAndPin(std::thread& thread, int worker, int first_core) {
  const std::string name = "kernels-" + std::to_string(worker);
  pthread_setname_np(thread.native_handle(), name.c_str());
  if (first_core < 0) return;
  const int core = first_core + worker;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  if (core >= CPU_SETSIZE || !CPU_ISSET(core, &allowed)) return;
  cpu_set_t pinned;
  CPU_ZERO(&pinned);
  CPU_SET(core, &pinned);
  // A refusal costs speed only.
  pthread_setaffinity_np(thread.native_handle(), sizeof(pinned), &pinned);
}

}  // namespace

class ThreadPool::Impl {
 public:
  explicit Impl(const Options& options)
      : size_(options.num_threads),
        spin_(options.oversubscribed ? kSpin.zero() : kSpin) {
    CHECK_GE(size_, 1);
    for (int worker = 1; worker < size_; ++worker) {
      threads_.emplace_back([this, worker] { Work(worker); });
      NameAndPin(threads_.back(), worker, options.first_core);
    }
  }

  ~Impl() {
    job_ = nullptr;
    Start();
    for (std::thread& thread : threads_) thread.join();
  }

  int size() const { return size_; }

  void Run(absl::FunctionRef<void(int)> fn) {
    if (size_ == 1) return fn(0);
    job_ = &fn;
    running_.store(size_ - 1, std::memory_order_relaxed);
    Start();
    fn(0);
    AwaitDone();
  }

 private:
  // Both sides of a sleep are sequentially consistent: either the sleeper sees
  // the new round, or the caller sees the sleeper.
  void Start() {
    round_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) round_.notify_all();
  }

  void AwaitRound(uint32_t seen) {
    if (Spin([&] { return round_.load(std::memory_order_acquire) != seen; })) {
      return;
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    round_.wait(seen, std::memory_order_seq_cst);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

  void AwaitDone() {
    if (Spin([&] { return running_.load(std::memory_order_acquire) == 0; })) {
      return;
    }
    int running;
    while ((running = running_.load(std::memory_order_acquire)) != 0) {
      running_.wait(running, std::memory_order_acquire);
    }
  }

  // Whether `done` came true while spinning was worth it.
  template <typename Done>
  bool Spin(const Done& done) const {
    if (done()) return true;
    if (spin_ == spin_.zero()) return false;
    const auto end = std::chrono::steady_clock::now() + spin_;
    do {
      for (int i = 0; i < kPausesBetweenClockReads; ++i) {
        if (done()) return true;
        _mm_pause();
      }
    } while (std::chrono::steady_clock::now() < end);
    return false;
  }

  void Work(int worker) {
    for (uint32_t seen = 0;; ++seen) {
      AwaitRound(seen);
      if (job_ == nullptr) return;
      (*job_)(worker);
      if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        running_.notify_one();
      }
    }
  }

  const int size_;
  const std::chrono::microseconds spin_;
  // Written between rounds by the caller, read in a round by the workers.
  const absl::FunctionRef<void(int)>* job_ = nullptr;
  alignas(64) std::atomic<uint32_t> round_ = 0;
  std::atomic<int> sleepers_ = 0;
  alignas(64) std::atomic<int> running_ = 0;
  std::vector<std::thread> threads_;
};

ThreadPool::ThreadPool(const Options& options)
    : impl_(std::make_unique<Impl>(options)) {}

ThreadPool::~ThreadPool() = default;

int ThreadPool::size() const { return impl_->size(); }

void ThreadPool::Run(absl::FunctionRef<void(int worker)> fn) { impl_->Run(fn); }

void ThreadPool::For(int64_t items, int64_t grain,
                     absl::FunctionRef<void(int64_t begin, int64_t end)> fn) {
  CHECK_GE(grain, 1);
  if (items <= 0) return;
  const int64_t grains = (items + grain - 1) / grain;
  if (size() == 1 || grains == 1) return fn(0, items);
  const int64_t ranges = kRangesPerWorker * size();
  const int64_t length = (grains + ranges - 1) / ranges * grain;
  std::atomic<int64_t> next = 0;
  Run([&](int) {
    for (;;) {
      const int64_t begin = next.fetch_add(length, std::memory_order_relaxed);
      if (begin >= items) return;
      fn(begin, std::min(begin + length, items));
    }
  });
}

}  // namespace lockstep::kernels
