// A step allocates nothing once its shapes were seen.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/ops.h"
#include "kernels/threads/thread_pool.h"
#include "proto/group.pb.h"
#include "tests/testing/memory/allocation_counter.h"
#include "tests/testing/tiny_model.h"
#include "worker/collectives/single_collective.h"
#include "worker/core/sequence.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/engine/model_engine.h"
#include "worker/model_spec/shard.h"
#include "worker/weights/model_files.h"

namespace lockstep {
namespace {

std::unique_ptr<Sequence> MakeSequence(int num_tokens, int32_t page) {
  auto request = std::make_shared<v1::AddRequest>();
  for (int i = 0; i < num_tokens; ++i) request->add_prompt_token_ids(3 + i);
  request->mutable_sampling()->set_top_p(1);
  request->mutable_sampling()->set_repetition_penalty(1);
  auto sequence = std::make_unique<Sequence>(SequenceId{1, 0}, request);
  sequence->mutable_pages() = {page, page + 1, page + 2};
  return sequence;
}

void ExpectNoneAfterWarmUp(const std::string& architecture) {
  SCOPED_TRACE(architecture);
  const std::string folder = ::testing::TempDir() + architecture;
  testing::TinyModel tiny;
  tiny.architecture = architecture;
  testing::WriteHuggingFaceFolder(tiny, folder);
  const auto model = OpenModel(folder);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto shard = MakeShard(model->config, model->row_parallel_blocks, 0, 1);
  kernels::ThreadPool pool({.num_threads = 2});
  auto ops = kernels::Ops::Create("auto", &pool);
  ASSERT_TRUE(ops.ok()) << ops.status();
  SingleCollective collective;
  auto engine =
      ModelEngine::Create(*model, *shard, {.num_pages = 6}, &*ops, &collective);
  ASSERT_TRUE(engine.ok()) << engine.status();

  // One prefills in chunks of 4, one decodes: its last token again and again,
  // which for the engine is as good as a new one.
  const auto prefilling = MakeSequence(40, 0);
  const auto decoding = MakeSequence(10, 3);
  StepPlan plan;
  plan.spans.push_back({.sequence = prefilling.get(), .begin = 0, .count = 4});
  plan.spans.push_back(
      {.sequence = decoding.get(), .begin = 0, .count = 10, .samples = true});
  StepResult result;
  int64_t before = testing::NumAllocations();
  ASSERT_TRUE((*engine)->Execute(plan, &result).ok());
  EXPECT_GT(testing::NumAllocations(), before) << "nothing is counted";
  for (int step = 1; step < 9; ++step) {
    plan.spans[0].begin = 4 * step;
    plan.spans[1].begin = 9;
    plan.spans[1].count = 1;
    before = testing::NumAllocations();
    const absl::Status status = (*engine)->Execute(plan, &result);
    if (step > 2) {
      EXPECT_EQ(testing::NumAllocations(), before) << "step " << step;
    }
    ASSERT_TRUE(status.ok()) << status;
  }
}

TEST(StepAllocation, NoneAfterWarmUp) {
  for (const char* architecture : {"llama", "gemma3", "olmo2", "qwen2moe"}) {
    ExpectNoneAfterWarmUp(architecture);
  }
}

}  // namespace
}  // namespace lockstep
