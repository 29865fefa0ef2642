#include "kernels/threads/thread_pool.h"

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
constexpr int kPausesBetweenYields = 256;

// A worker takes this part of what it would get of the rest in even shares:
// long ranges first, as memory is read fastest end to end, short ones in the
// end, so that a slow core delays the others by little.
constexpr int64_t kSharesPerWorker = 2;

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

// A round of work is a gate. The caller opens it, workers enter, run the job
// and leave; the caller closes it when it has nothing left to do itself, and
// waits for those inside only. A worker that the system keeps off its core thus
// delays no one.
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
    Open(nullptr);
    for (std::thread& thread : threads_) thread.join();
  }

  int size() const { return size_; }

  // fn(worker) on the caller and on those workers that come in time, or on all.
  void Run(bool all, absl::FunctionRef<void(int)> fn) {
    if (size_ == 1) return fn(0);
    Open(&fn);
    fn(0);
    if (all) {
      Await(left_, [this](uint32_t left) { return left == size_ - 1; });
      Close();
    } else {
      const uint32_t entered = Close();
      Await(left_, [entered](uint32_t left) { return left == entered; });
    }
  }

 private:
  // The gate's word: round in the high half, then whether it is open, and how
  // many workers have entered.
  static constexpr uint64_t kRound = uint64_t{1} << 32;
  static constexpr uint64_t kOpen = uint64_t{1} << 31;
  static uint32_t RoundOf(uint64_t gate) { return gate >> 32; }
  static uint32_t EnteredOf(uint64_t gate) { return gate & (kOpen - 1); }

  // Words and sleepers are sequentially consistent: either who goes to sleep
  // sees the new value, or who changed it sees the sleeper.
  void Open(const absl::FunctionRef<void(int)>* job) {
    job_ = job;
    left_.store(0, std::memory_order_relaxed);
    const uint64_t round = gate_.load(std::memory_order_relaxed) / kRound + 1;
    gate_.store(round * kRound | kOpen, std::memory_order_seq_cst);
    bell_.store(static_cast<uint32_t>(round), std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) bell_.notify_all();
  }

  // Returns how many workers entered before.
  uint32_t Close() {
    return EnteredOf(gate_.fetch_and(~kOpen, std::memory_order_acq_rel));
  }

  // Whether the worker is in; false if the round is over.
  bool Enter(uint32_t* round) {
    uint64_t gate = gate_.load(std::memory_order_acquire);
    while (gate & kOpen && RoundOf(gate) != *round) {
      if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
        *round = RoundOf(gate);
        return true;
      }
    }
    *round = RoundOf(gate);
    return false;
  }

  void Work(int worker) {
    uint32_t round = 0;
    for (;;) {
      Await(bell_, [round](uint32_t bell) { return bell != round; });
      if (!Enter(&round)) continue;
      if (job_ == nullptr) return;
      (*job_)(worker);
      left_.fetch_add(1, std::memory_order_seq_cst);
      if (sleepers_.load(std::memory_order_seq_cst) > 0) left_.notify_all();
    }
  }

  // Spins while that is worth it, then sleeps, until done(word).
  template <typename Done>
  void Await(std::atomic<uint32_t>& word, const Done& done) {
    if (Spin(word, done)) return;
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    for (;;) {
      const uint32_t value = word.load(std::memory_order_seq_cst);
      if (done(value)) break;
      word.wait(value, std::memory_order_seq_cst);
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

  template <typename Done>
  bool Spin(const std::atomic<uint32_t>& word, const Done& done) const {
    const auto is_done = [&] {
      return done(word.load(std::memory_order_acquire));
    };
    if (is_done()) return true;
    if (spin_ == spin_.zero()) return false;
    const auto end = std::chrono::steady_clock::now() + spin_;
    do {
      for (int i = 0; i < kPausesBetweenYields; ++i) {
        if (is_done()) return true;
        _mm_pause();
      }
      // Whom we wait for may want this very core.
      sched_yield();
    } while (std::chrono::steady_clock::now() < end);
    return false;
  }

  const int size_;
  const std::chrono::microseconds spin_;
  // What a worker that comes in reads, in one cache line. The job is written
  // while no worker is inside; null ends the workers.
  alignas(64) const absl::FunctionRef<void(int)>* job_ = nullptr;
  std::atomic<uint64_t> gate_ = 0;
  std::atomic<uint32_t> bell_ = 0;  // the round, in a word one can sleep on
  std::atomic<int> sleepers_ = 0;   // on either word
  alignas(64) std::atomic<uint32_t> left_ = 0;  // workers done with the round
  std::vector<std::thread> threads_;
};

ThreadPool::ThreadPool(const Options& options)
    : impl_(std::make_unique<Impl>(options)) {}

ThreadPool::~ThreadPool() = default;

int ThreadPool::size() const { return impl_->size(); }

void ThreadPool::Run(absl::FunctionRef<void(int worker)> fn) {
  impl_->Run(/*all=*/true, fn);
}

void ThreadPool::For(int64_t items, int64_t grain,
                     absl::FunctionRef<void(int64_t begin, int64_t end)> fn) {
  CHECK_GE(grain, 1);
  if (items <= 0) return;
  const int64_t grains = (items + grain - 1) / grain;
  if (size() == 1 || grains == 1) return fn(0, items);
  std::atomic<int64_t> taken = 0;  // grains
  impl_->Run(/*all=*/false, [&](int) {
    int64_t first = taken.load(std::memory_order_relaxed);
    while (first < grains) {
      const int64_t share = (grains - first) / (kSharesPerWorker * size());
      const int64_t last = first + std::max<int64_t>(share, 1);
      if (taken.compare_exchange_weak(first, last, std::memory_order_relaxed)) {
        fn(first * grain, std::min(last * grain, items));
        first = taken.load(std::memory_order_relaxed);
      }
    }
  });
}

}  // namespace lockstep::kernels
