#include "kernels/threads/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::kernels {
namespace {

struct PoolCase {
  int threads;
  bool oversubscribed;
};

class ThreadPoolTest : public testing::TestWithParam<PoolCase> {
 protected:
  ThreadPoolTest()
      : pool_({.num_threads = GetParam().threads,
               .oversubscribed = GetParam().oversubscribed}) {}
  ThreadPool pool_;
};

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolTest,
                         testing::Values(PoolCase{1, false}, PoolCase{2, false},
                                         PoolCase{2, true}, PoolCase{5, true}));

TEST_P(ThreadPoolTest, RunsOnceOnEveryWorkerAndReturnsWhenAllAreDone) {
  // Plain ints: a worker that is not waited for is a race to the sanitizer.
  std::vector<int> runs(pool_.size());
  for (int round = 1; round <= 300; ++round) {
    pool_.Run([&](int worker) { ++runs[worker]; });
    for (int count : runs) ASSERT_EQ(count, round);
  }
}

TEST_P(ThreadPoolTest, TheCallerIsWorkerZero) {
  std::thread::id first;
  pool_.Run([&](int worker) {
    if (worker == 0) first = std::this_thread::get_id();
  });
  EXPECT_EQ(first, std::this_thread::get_id());
}

TEST_P(ThreadPoolTest, ForCoversEachItemOnceInWholeGrains) {
  for (int64_t items : {0, 1, 2, 7, 16, 17, 100, 1000}) {
    for (int64_t grain : {1, 2, 3, 16, 2000}) {
      std::vector<int> visits(items);
      std::atomic<int> broken = 0;
      pool_.For(items, grain, [&](int64_t begin, int64_t end) {
        broken += begin % grain != 0 || begin >= end || end > items ||
                  (end != items && end % grain != 0);
        for (int64_t i = begin; i < end; ++i) ++visits[i];
      });
      EXPECT_EQ(visits, std::vector<int>(items, 1)) << items << " / " << grain;
      EXPECT_EQ(broken, 0) << items << " / " << grain;
    }
  }
}

TEST_P(ThreadPoolTest, WorksForWorkersThatWentToSleep) {
  std::atomic<int> done = 0;
  for (int round = 0; round < 5; ++round) {
    // Longer than workers spin; nothing below depends on how long.
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(3);
    while (std::chrono::steady_clock::now() < end) sched_yield();
    pool_.Run([&](int) { ++done; });
  }
  EXPECT_EQ(done, 5 * pool_.size());
}

TEST_P(ThreadPoolTest, CallsFromAnotherThreadAreFineOneAtATime) {
  int64_t sum = 0;
  std::thread caller([&] {
    std::atomic<int64_t> partial = 0;
    pool_.For(100, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) partial += i;
    });
    sum = partial;
  });
  caller.join();
  EXPECT_EQ(sum, 4950);
}

TEST(ThreadPoolThreadsTest, AreNamedAndPinnedWhereTheProcessMayRun) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  ThreadPool pool({.num_threads = 2, .first_core = 0, .oversubscribed = true});
  char name[16] = {};
  cpu_set_t pinned;
  pool.Run([&](int worker) {
    if (worker != 1) return;
    pthread_getname_np(pthread_self(), name, sizeof(name));
    pthread_getaffinity_np(pthread_self(), sizeof(pinned), &pinned);
  });
  EXPECT_EQ(std::string(name), "kernels-1");
  if (CPU_ISSET(1, &allowed)) {
    EXPECT_EQ(CPU_COUNT(&pinned), 1);
    EXPECT_TRUE(CPU_ISSET(1, &pinned));
  } else {
    EXPECT_TRUE(CPU_EQUAL(&pinned, &allowed));
  }
}

TEST(ThreadPoolThreadsTest, ACoreThatDoesNotExistIsNoError) {
  ThreadPool pool({.num_threads = 2, .first_core = 1000000});
  int runs[2] = {};
  pool.Run([&](int worker) { ++runs[worker]; });
  EXPECT_EQ(runs[0] + runs[1], 2);
}

}  // namespace
}  // namespace lockstep::kernels
