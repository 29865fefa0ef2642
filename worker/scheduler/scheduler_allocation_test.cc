// Steps allocate nothing while sequences decode and prefill, neither beginning
// nor ending.

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/group.pb.h"
#include "tests/testing/memory/allocation_counter.h"
#include "tests/testing/scheduler_driver.h"
#include "worker/core/output_sink.h"
#include "worker/core/step_result.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep {
namespace {

class SilentSink final : public OutputSink {
 public:
  void OnFirstScheduled(SequenceId, int) override {}
  void OnPromptLogprobs(SequenceId,
                        std::vector<v1::PositionLogprobs>) override {}
  void OnToken(SequenceId, uint32_t,
               std::vector<v1::PositionLogprobs>) override {}
  void OnFinish(SequenceId, v1::FinishReason,
                std::optional<uint32_t>) override {}
};

TEST(SchedulerAllocationTest, NoneWhileSequencesDecodeAndPrefill) {
  SilentSink sink;
  Scheduler scheduler({.num_pages = 512,
                       .page_size = 4,
                       .max_step_tokens = 16,
                       .max_sequences = 8,
                       .max_logits_rows = 8,
                       .max_context = 1024},
                      &sink);
  for (uint64_t request = 1; request <= 4; ++request) {
    v1::RankMessage message;
    *message.mutable_add() =
        MakeRequest(TokenRun(1000 * request, request == 4 ? 900 : 5), 100);
    message.mutable_add()->set_request(request);
    ASSERT_TRUE(scheduler.Apply(message).ok());
  }
  StepResult result;
  result.spans.resize(8);
  for (int step = 0; step < 60; ++step) {
    const int64_t before = testing::NumAllocations();
    const StepPlan& plan = scheduler.Plan();
    scheduler.Commit(result);
    if (step < 5) continue;
    ASSERT_EQ(plan.spans.size(), 4);
    EXPECT_EQ(testing::NumAllocations(), before) << "step " << step;
  }
  EXPECT_GT(testing::NumAllocations(), 0) << "nothing is counted";
}

}  // namespace
}  // namespace lockstep
