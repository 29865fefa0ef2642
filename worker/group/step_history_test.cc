#include "worker/group/step_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace lockstep {
namespace {

StepHistory::Entry Step(uint64_t step) {
  return {.step = step, .messages = 1, .tokens = 2, .digest = {0xab}};
}

TEST(StepHistory, KeepsTheLastSteps) {
  StepHistory history(3);
  EXPECT_TRUE(history.Entries().empty());
  for (uint64_t step = 1; step <= 7; ++step) {
    history.Record(Step(step));
    const auto entries = history.Entries();
    ASSERT_EQ(entries.size(), std::min<uint64_t>(step, 3));
    EXPECT_EQ(entries.back().step, step);
    EXPECT_EQ(entries.front().step, step - entries.size() + 1);
  }
}

// As when the step thread hangs and another writes its history down.
TEST(StepHistory, MayBeReadWhileItIsWritten) {
  constexpr uint64_t kSteps = 100'000;
  StepHistory history(4);
  std::thread step_thread([&] {
    for (uint64_t step = 1; step <= kSteps; ++step) {
      StepHistory::Entry entry = {.step = step, .messages = 7, .tokens = 9};
      entry.digest.fill(step % 251);
      history.Record(entry);
    }
  });
  uint64_t last = 0;
  while (last < kSteps) {
    for (const StepHistory::Entry& entry : history.Entries()) {
      Digest expected;
      expected.fill(entry.step % 251);
      ASSERT_EQ(entry.digest, expected) << entry.step;
      last = std::max(last, entry.step);
    }
  }
  step_thread.join();
}

TEST(StepHistory, WritesOneLineAStep) {
  StepHistory history(2);
  history.Record(Step(8));
  history.Record(Step(9));
  EXPECT_EQ(history.ToString(),
            "step 8 messages 1 tokens 2 digest "
            "ab000000000000000000000000000000\n"
            "step 9 messages 1 tokens 2 digest "
            "ab000000000000000000000000000000\n");
}

}  // namespace
}  // namespace lockstep
