#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>

#include "tests/testing/scheduler_driver.h"
#include "worker/scheduler/scheduler.h"
#include "worker/scheduler/scheduler_options.h"

namespace lockstep {
namespace {

// So many wait at most, as the leader's admission sees to.
constexpr int kQueue = 12;

SchedulerOptions Options() {
  return {.num_pages = 12,
          .page_size = 4,
          .max_step_tokens = 16,
          .max_sequences = 3,
          .max_logits_rows = 3,
          .max_context = 32};
}

// Steps after its arrival in which a request has ended, by the argument at
// ByPrecedence.
uint64_t LongestLife(int priority, int least_priority) {
  const SchedulerOptions options = Options();
  const int ahead = kQueue + options.max_sequences;
  return kStepsPerPriority * (priority - least_priority) +
         (ahead + 1) * (options.max_sequences + 1) * options.max_context;
}

uint64_t Add(SchedulerDriver* driver, std::mt19937* random, int priority) {
  v1::AddRequest request = MakeRequest(
      TokenRun((*random)() % 1000, 1 + (*random)() % 20), 1 + (*random)() % 12);
  request.set_priority(priority);
  return driver->Add(request);
}

// However many urgent ones come, the least urgent waits for no more than its
// priority says; and it does wait for that.
TEST(SchedulerStarvationTest, AnEndlessStreamOfUrgentRequestsIsOvertaken) {
  for (const int distance : {1, 5, 200}) {
    SCOPED_TRACE(distance);
    std::mt19937 random(distance);
    SchedulerDriver driver(Options());
    const int urgent = 100 - distance;
    for (int i = 0; i < kQueue; ++i) Add(&driver, &random, urgent);
    const SequenceId patient = {Add(&driver, &random, 100), 0};
    while (!driver.outputs().finished(patient)) {
      while (driver.scheduler().stats().waiting_sequences < kQueue) {
        Add(&driver, &random, urgent);
      }
      driver.Step();
      const uint64_t step = driver.scheduler().stats().step;
      ASSERT_LE(step, LongestLife(100, urgent));
    }
    EXPECT_GE(driver.scheduler().stats().step, kStepsPerPriority * distance);
  }
}

TEST(SchedulerStarvationTest, EveryRequestEndsInItsTime) {
  constexpr int kMostPriority = 4;
  for (uint32_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    SchedulerDriver driver(Options());
    std::map<uint64_t, uint64_t> limits;  // steps, of live requests
    for (uint64_t step = 1; step <= 3000; ++step) {
      while (driver.scheduler().stats().waiting_sequences < kQueue) {
        // Mostly urgent ones.
        const int priority =
            random() % 4 > 0 ? 0 : static_cast<int>(random() % kMostPriority);
        const uint64_t number = Add(&driver, &random, priority);
        limits[number] = step + LongestLife(priority, 0);
      }
      driver.Step();
      for (auto live = limits.begin(); live != limits.end();) {
        ASSERT_LE(step, live->second) << "request " << live->first;
        const bool ended = driver.outputs().finished({live->first, 0});
        live = ended ? limits.erase(live) : std::next(live);
      }
    }
    driver.RunUntilIdle();
    driver.ExpectAllAsAlone();
  }
}

}  // namespace
}  // namespace lockstep
