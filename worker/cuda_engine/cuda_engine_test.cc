// The engine on emulated GPUs, or on the machine's: whose bits depend on what,
// how the kinds of requests are answered, and what becomes of errors.
#include "worker/cuda_engine/cuda_engine.h"

#include <absl/status/status.h>
#include <absl/types/span.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/group.pb.h"
#include "tests/testing/cuda/cuda_group.h"
#include "tests/testing/device/test_gpu.h"
#include "tests/testing/engine/hand_planned_engine.h"
#include "tests/testing/engine_group.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"
#include "worker/core/sequence.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/sampling/sampler.h"
#include "worker/weights/model_files.h"

namespace lockstep {
namespace {

using kernels::Arithmetic;
using kernels::DType;
using testing::CudaGroup;
using testing::EngineGroup;
using testing::HandPlannedEngine;
using ::testing::HasSubstr;
using testing::SomeTokens;
using testing::TinyModel;

constexpr int kNumPages = 48;
constexpr int kPageSize = 4;
constexpr HandPlannedEngine::Pages kPages = {kNumPages, kPageSize};

CudaEngine::Options Options(Arithmetic arithmetic = Arithmetic::kStrict) {
  return {.num_pages = kNumPages,
          .page_size = kPageSize,
          .max_step_tokens = 64,
          .max_sequences = 4,
          .max_logits_rows = 64,
          .arithmetic = arithmetic};
}

ModelFiles Write(const TinyModel& tiny, bool gguf = false) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string path =
      ::testing::TempDir() + test->name() + (gguf ? ".gguf" : "");
  if (gguf) {
    testing::WriteGguf(tiny, path);
  } else {
    testing::WriteHuggingFaceFolder(tiny, path);
  }
  auto model = OpenModel(path);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

TinyModel Qwen3() {
  TinyModel tiny;
  tiny.architecture = "qwen3";
  tiny.vocab_size = 501;  // padded on two ranks
  tiny.type = DType::kBF16;
  return tiny;
}

std::unique_ptr<CudaGroup> MakeGroup(
    TestGpu* gpu, const ModelFiles& model, int size = 1,
    Arithmetic arithmetic = Arithmetic::kStrict) {
  auto group = CudaGroup::Create(gpu, model, size, Options(arithmetic));
  EXPECT_TRUE(group.ok()) << group.status();
  return *std::move(group);
}

TEST(CudaEngine, ASequencesBitsDependOnItAlone) {
  const ModelFiles model = Write(Qwen3());
  TestGpu gpu;
  for (Arithmetic arithmetic : {Arithmetic::kStrict, Arithmetic::kFast}) {
    const auto group = MakeGroup(&gpu, model, 1, arithmetic);
    HandPlannedEngine alone = PlanByHand(group.get(), kPages);
    const int a = alone.Add(SomeTokens(20, 3)), b = alone.Add(SomeTokens(9, 7));
    alone.Step({{a, 20}});
    alone.Step({{b, 9}});
    alone.Step({{b, 1}});
    HandPlannedEngine mixed = PlanByHand(group.get(), kPages);
    const int c = mixed.Add(SomeTokens(9, 7)), d = mixed.Add(SomeTokens(20, 3));
    mixed.Step({{d, 7}});
    mixed.Step({{c, 9}, {d, 1}});
    mixed.Step({{d, 12}, {c, 1}});
    EXPECT_EQ(alone.logits(a), mixed.logits(d));
    EXPECT_EQ(alone.logits(b), mixed.logits(c));
    EXPECT_EQ(alone.tokens(b), mixed.tokens(c));
  }
}

TEST(CudaEngine, ADeviceThatDawdlesChangesNothing) {
  TestGpu gpu(/*devices=*/2);
  if (gpu.fake() == nullptr) GTEST_SKIP() << "a GPU is not told when to work";
  const ModelFiles model = Write(Qwen3());
  std::vector<std::vector<std::vector<float>>> logits;
  for (int seed : {0, 1, 2}) {
    if (seed > 0) gpu.fake()->Delay(seed, /*most_us=*/200);
    const auto group = MakeGroup(&gpu, model, /*size=*/2);
    HandPlannedEngine engine = PlanByHand(group.get(), kPages);
    const int a = engine.Add(SomeTokens(11, 3));
    engine.Step({{a, 11}});
    for (int i = 0; i < 4; ++i) engine.Step({{a, 1}});
    logits.push_back(engine.logits(a));
  }
  EXPECT_EQ(logits[0], logits[1]);
  EXPECT_EQ(logits[0], logits[2]);
}

// Against the engine of the CPU, with weights that both decode exactly.
TEST(CudaEngine, ComputesWithWeightsAsTheyAreStored) {
  TestGpu gpu;
  for (DType type : {DType::kF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_1}) {
    TinyModel tiny;
    tiny.type = type;
    tiny.tied_embeddings = type == DType::kQ8_0;
    const ModelFiles model = Write(tiny, /*gguf=*/true);
    const auto group = MakeGroup(&gpu, model);
    HandPlannedEngine found = PlanByHand(group.get(), kPages);
    HandPlannedEngine expected(
        model, 1, {.engine = {.num_pages = kNumPages, .page_size = kPageSize}});
    for (HandPlannedEngine* engine : {&found, &expected}) {
      engine->Step({{engine->Add(SomeTokens(9, 5)), 9}});
    }
    for (int position = 0; position < 9; ++position) {
      for (size_t i = 0; i < expected.logits(0)[position].size(); ++i) {
        ASSERT_NEAR(found.logits(0)[position][i],
                    expected.logits(0)[position][i], 2e-4)
            << kernels::DTypeName(type);
      }
    }
  }
}

// A sequence of its own pages; all of it is one span, which samples or embeds.
struct Request {
  Request(int number, const std::vector<uint32_t>& tokens) {
    proto->set_request(number);
    proto->mutable_prompt_token_ids()->Assign(tokens.begin(), tokens.end());
    proto->mutable_sampling()->set_top_p(1);
    proto->mutable_sampling()->set_repetition_penalty(1);
  }

  SequenceSpan Span() {
    sequence =
        std::make_unique<Sequence>(SequenceId{proto->request(), 0}, proto);
    const int first = static_cast<int>(proto->request()) * 8;
    for (int i = 0; i < 8; ++i) sequence->mutable_pages().push_back(first + i);
    SequenceSpan span;
    span.sequence = sequence.get();
    span.count = sequence->num_tokens();
    span.samples = !sequence->is_embedded();
    span.embeds = sequence->is_embedded();
    return span;
  }

  std::shared_ptr<v1::AddRequest> proto = std::make_shared<v1::AddRequest>();
  std::unique_ptr<Sequence> sequence;
};

StepPlan PlanOf(const std::vector<Request*>& requests) {
  StepPlan plan;
  plan.step = 1;
  for (Request* request : requests) {
    plan.spans.push_back(request->Span());
    plan.num_tokens += plan.spans.back().count;
    plan.num_logits_rows += plan.spans.back().num_logits_rows();
  }
  return plan;
}

// The tokens that the host samples of the logits; whether an observer sees
// these or not.
void ExpectTokensOfSampler(CudaGroup* group, const ModelFiles& model,
                           const StepPlan& plan, StepResult* result) {
  StepResult unseen;
  ASSERT_TRUE(group->Execute(plan, &unseen).ok());
  std::vector<uint32_t> expected;
  group->engine(0).set_logits_observer(
      [&](const SequenceSpan& span, int, absl::Span<const float> logits) {
        Sampler sampler(model.config.vocab_size);
        expected.push_back(sampler.Sample(logits, *span.sequence));
      });
  ASSERT_TRUE(group->Execute(plan, result).ok());
  ASSERT_EQ(expected.size(), plan.spans.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(result->spans[i].token, expected[i]) << i;
    EXPECT_EQ(unseen.spans[i].token, expected[i]) << i;
  }
}

TEST(CudaEngine, SamplesWhatTheHostSamplesOfTheSameLogits) {
  const ModelFiles model = Write(Qwen3());
  TestGpu gpu;
  const auto group = MakeGroup(&gpu, model);
  Request greedy(0, SomeTokens(9, 3)), drawn(1, SomeTokens(5, 4)),
      penalized(2, SomeTokens(7, 5)), scored(3, SomeTokens(6, 6));
  drawn.proto->mutable_sampling()->set_temperature(2);
  drawn.proto->mutable_sampling()->set_seed(17);
  penalized.proto->mutable_sampling()->set_repetition_penalty(5);
  scored.proto->mutable_sampling()->set_logprobs_plus_one(3);
  const StepPlan plan = PlanOf({&greedy, &drawn, &penalized, &scored});
  StepResult result;
  ExpectTokensOfSampler(group.get(), model, plan, &result);
  ASSERT_EQ(result.spans[3].logprobs.size(), 1);
  EXPECT_EQ(result.spans[3].logprobs[0].top_size(), 2);
}

// Biases of all ids take all the room there is.
TEST(CudaEngine, TheHostSamplesWhatTheDeviceHasNoRoomFor) {
  TinyModel tiny = Qwen3();
  tiny.vocab_size = 20000;
  const ModelFiles model = Write(tiny);
  TestGpu gpu;
  const auto group = MakeGroup(&gpu, model);
  Request biased(0, SomeTokens(3, 3)), one_more(1, SomeTokens(4, 4));
  for (Request* request : {&biased, &one_more}) {
    v1::ResolvedSampling* sampling = request->proto->mutable_sampling();
    sampling->set_temperature(1);
    sampling->set_logprobs_plus_one(1);
    const int biases = request == &biased ? tiny.vocab_size : 1;
    for (int id = 0; id < biases; ++id) {
      sampling->add_bias_token_ids(id);
      sampling->add_bias_values(id % 7);
    }
  }
  const StepPlan plan = PlanOf({&biased, &one_more});
  StepResult result;
  ExpectTokensOfSampler(group.get(), model, plan, &result);
  ASSERT_EQ(result.spans.size(), 2);
  for (const SpanResult& span : result.spans) {
    ASSERT_EQ(span.logprobs.size(), 1);
    EXPECT_EQ(span.logprobs[0].token().token_id(), span.token);
  }
}

TEST(CudaEngine, EmbedsAsTheEngineOfTheCpuDoes) {
  const ModelFiles model = Write(Qwen3());
  TestGpu gpu;
  const auto on_gpu = MakeGroup(&gpu, model);
  auto on_cpu = EngineGroup::Create(
      model, 1, {.engine = {.num_pages = kNumPages, .page_size = kPageSize}});
  ASSERT_TRUE(on_cpu.ok()) << on_cpu.status();
  std::vector<StepResult> results(2);
  for (Engine* engine : {static_cast<Engine*>(on_gpu.get()),
                         static_cast<Engine*>(on_cpu->get())}) {
    Request mean(0, SomeTokens(9, 3)), last(1, SomeTokens(5, 4)),
        text(2, SomeTokens(3, 5));
    mean.proto->mutable_embedding()->set_pooling(v1::MEAN);
    last.proto->mutable_embedding()->set_pooling(v1::LAST_TOKEN);
    for (Request* request : {&mean, &last}) {
      request->proto->mutable_embedding()->set_dimensions(64);
    }
    ASSERT_TRUE(engine
                    ->Execute(PlanOf({&mean, &last, &text}),
                              &results[engine == on_gpu.get() ? 0 : 1])
                    .ok());
  }
  EXPECT_EQ(results[0].spans[2].token, results[1].spans[2].token);
  for (int i : {0, 1}) {
    const auto& found = results[0].spans[i].embedding;
    ASSERT_EQ(found.size(), 64);
    for (size_t j = 0; j < found.size(); ++j) {
      EXPECT_NEAR(found[j], results[1].spans[i].embedding[j], 1e-4);
    }
  }
}

TEST(CudaEngine, EachCallThatFailsIsAStatusThatNamesItAndLeavesNothing) {
  TestGpu gpu;
  FakeCuda* const fake = gpu.fake();
  if (fake == nullptr) GTEST_SKIP() << "a GPU is not told to fail";
  TinyModel tiny;
  tiny.num_layers = 1;
  const ModelFiles model = Write(tiny);
  Request request(0, SomeTokens(5, 3));
  const StepPlan plan = PlanOf({&request});
  const auto run = [&]() -> absl::Status {
    auto group = CudaGroup::Create(&gpu, model, 1, Options());
    if (!group.ok()) return group.status();
    StepResult result;
    return (*group)->Execute(plan, &result);
  };
  constexpr int kIllegalAddress = 700;
  int calls = 0;
  while (true) {
    fake->Fail("", ++calls, kIllegalAddress);
    const absl::Status status = run();
    const std::string call = fake->failed();
    fake->Fail("", 1, 0);
    EXPECT_EQ(fake->alive(), 0) << "after call " << calls;
    if (status.ok()) break;
    // Kernels are named as they are launched, calls without their version.
    const std::string name = call == "cuLaunchKernel"
                                 ? " on device 0"
                                 : call.substr(0, call.find("_v2"));
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
  EXPECT_GT(calls, 50);
}

TEST(CudaEngine, OutOfMemoryNamesWhatDoesNotFit) {
  TestGpu gpu;
  if (gpu.fake() == nullptr) GTEST_SKIP() << "a GPU has what it has";
  const ModelFiles model = Write(TinyModel());
  constexpr int kOutOfMemory = 2;
  const char* const kPurposes[] = {"weights", "workspaces", "KV pages"};
  for (int i = 0; i < 3; ++i) {
    gpu.fake()->Fail("cuMemAlloc_v2", i + 1, kOutOfMemory);
    const auto status = CudaGroup::Create(&gpu, model, 1, Options()).status();
    gpu.fake()->Fail("", 1, 0);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(std::string("The ") + kPurposes[i] + " take "));
  }
}

// The rank that fails ends the other one's exchange.
TEST(CudaEngine, ARankThatFailsEndsTheStepOfAll) {
  TestGpu gpu(/*devices=*/2);
  if (gpu.fake() == nullptr) GTEST_SKIP() << "a GPU is not told to fail";
  const ModelFiles model = Write(Qwen3());
  const auto group = MakeGroup(&gpu, model, /*size=*/2);
  Request request(0, SomeTokens(5, 3));
  const StepPlan plan = PlanOf({&request});
  StepResult result;
  ASSERT_TRUE(group->Execute(plan, &result).ok());
  gpu.fake()->Fail("cuLaunchKernel", 12, 719);
  EXPECT_FALSE(group->Execute(plan, &result).ok());
  gpu.fake()->Fail("", 1, 0);
}

}  // namespace
}  // namespace lockstep
