#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <vector>

#include "proto/group.pb.h"
#include "tests/testing/fake_engine.h"
#include "tests/testing/scheduler_driver.h"
#include "worker/core/output_sink.h"
#include "worker/core/step_result.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep {
namespace {

// LOCKSTEP_SOAK_STEPS=1000000 makes it a long one; it prints its speed.
int NumSteps() {
  const char* steps = std::getenv("LOCKSTEP_SOAK_STEPS");
  return steps != nullptr ? std::atoi(steps) : 20000;
}

// Counts, so that a long run needs no memory.
class CountingSink final : public OutputSink {
 public:
  void OnFirstScheduled(SequenceId, int) override {}
  void OnPromptLogprobs(SequenceId,
                        std::vector<v1::PositionLogprobs>) override {}
  void OnToken(SequenceId, uint32_t,
               std::vector<v1::PositionLogprobs>) override {
    ++tokens;
  }
  void OnFinish(SequenceId, v1::FinishReason,
                std::optional<uint32_t>) override {
    ++finishes;
  }

  uint64_t tokens = 0;
  uint64_t finishes = 0;
};

v1::RankMessage DrawRequest(uint64_t number, std::mt19937* random) {
  // Half of each prompt is one of eight beginnings.
  std::vector<uint32_t> prompt = TokenRun(100 * ((*random)() % 8), 48);
  for (int i = 0; i < 48; ++i) prompt.push_back((*random)() % 1000);
  v1::RankMessage message;
  *message.mutable_add() = MakeRequest(prompt, 1 + (*random)() % 64);
  message.mutable_add()->set_request(number);
  message.mutable_add()->set_priority((*random)() % 2);
  return message;
}

// Sixteen sequences decode at a time, a thousand wait, the prefix cache is full
// and always evicting.
TEST(SchedulerSoakTest, KeepsItsPaceAndItsPages) {
  const SchedulerOptions options = {.num_pages = 256,
                                    .page_size = 16,
                                    .max_step_tokens = 128,
                                    .max_sequences = 16,
                                    .max_logits_rows = 16,
                                    .max_context = 1024};
  CountingSink sink;
  Scheduler scheduler(options, &sink);
  FakeEngine engine({.num_pages = options.num_pages,
                     .page_size = options.page_size,
                     .vocabulary_size = 1000});
  std::mt19937 random(1);
  StepResult result;
  uint64_t number = 0;
  const int num_steps = NumSteps();
  const auto start = std::chrono::steady_clock::now();
  for (int step = 0; step < num_steps; ++step) {
    while (scheduler.stats().waiting_sequences < 1000) {
      ASSERT_TRUE(scheduler.Apply(DrawRequest(++number, &random)).ok());
    }
    const StepPlan& plan = scheduler.Plan();
    ASSERT_TRUE(engine.Execute(plan, &result).ok());
    scheduler.Commit(result);
    if (step % 1000 == 0) {
      ASSERT_TRUE(scheduler.CheckConservation().ok());
    }
  }
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(scheduler.CheckConservation().ok());
  EXPECT_GT(sink.tokens, num_steps);
  EXPECT_EQ(sink.finishes + scheduler.stats().running_sequences +
                scheduler.stats().waiting_sequences,
            number);
  std::cout << num_steps << " steps, " << sink.tokens << " tokens, "
            << scheduler.stats().preemptions << " preemptions in "
            << took.count() << " s: " << num_steps / took.count() * 60
            << " steps a minute\n";
}

}  // namespace
}  // namespace lockstep
