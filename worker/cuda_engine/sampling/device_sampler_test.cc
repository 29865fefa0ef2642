// Steps of mixed requests, against the sampler of the host's threads.
#include "worker/cuda_engine/sampling/device_sampler.h"

#include <absl/status/status.h>
#include <absl/types/span.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/argmax.h"
#include "kernels/threads/thread_pool.h"
#include "proto/grammar.pb.h"
#include "proto/group.pb.h"
#include "tests/testing/device/test_gpu.h"
#include "tests/testing/grammar/tiny_token_bytes.h"
#include "worker/core/sequence.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/device/cuda_device.h"
#include "worker/device/cuda_driver.h"
#include "worker/device/cuda_stream.h"
#include "worker/device/device_arena.h"
#include "worker/device/device_layout.h"
#include "worker/engine/batch_builder.h"
#include "worker/engine/row_sampler.h"
#include "worker/grammar/grammar_store.h"
#include "worker/grammar/step_masks.h"
#include "worker/sampling/sampler.h"

namespace lockstep {
namespace {

constexpr unsigned kSeed = 31;
constexpr int kVocabSize = 512;
constexpr int kStride = kVocabSize + 16;
constexpr int kMostRows = 16;
constexpr int kFlights = 2;

using Request = std::shared_ptr<v1::AddRequest>;

Request MakeRequest(float temperature, uint64_t grammar = 0) {
  auto request = std::make_shared<v1::AddRequest>();
  for (uint32_t id : {7, 8, 7, 9}) request->add_prompt_token_ids(id);
  request->set_grammar(grammar);
  v1::ResolvedSampling* sampling = request->mutable_sampling();
  sampling->set_temperature(temperature);
  sampling->set_top_p(1);
  sampling->set_repetition_penalty(1);
  sampling->set_seed(kSeed);
  return request;
}

v1::Grammar Regex(const std::string& regex) {
  v1::Grammar grammar;
  grammar.set_regex(regex);
  return grammar;
}

// Sequences whose last token is computed, and the rows of their logits.
struct Step {
  // Scores prompt tokens from position `scored` on.
  void Add(const Request& request, int scored = 3) {
    sequences.push_back(
        std::make_unique<Sequence>(SequenceId{sequences.size(), 0}, request));
    const int span = static_cast<int>(plan.spans.size());
    plan.spans.push_back({.sequence = sequences.back().get(),
                          .begin = scored,
                          .count = sequences.back()->num_tokens() - scored,
                          .samples = true,
                          .prompt_logits_begin = scored,
                          .prompt_logits_end = 3});
    for (int position = scored; position < 3; ++position) {
      rows.push_back({span, position, /*is_prompt=*/true});
    }
    rows.push_back({span, sequences.back()->num_tokens() - 1, false});
  }

  std::vector<std::unique_ptr<Sequence>> sequences;
  StepPlan plan;
  std::vector<LogitsRow> rows;
};

class DeviceSamplerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::printf("seed %u\n", kSeed);
    auto driver = CudaDriver::Load(gpu_.cuda_library());
    ASSERT_TRUE(driver.ok()) << driver.status();
    driver_ = *std::move(driver);
    auto device = CudaDevice::Open(driver_.get(), 0);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    auto stream = CudaStream::Create(device_.get());
    ASSERT_TRUE(stream.ok()) << stream.status();
    stream_ = *std::move(stream);
    DeviceLayout layout;
    layout.Add("logits", kFlights * kMostRows * kStride, &logits_);
    layout.Add("ids", kMostRows, &ids_);
    sampler_ = std::make_unique<DeviceSampler>(
        DeviceSampler::Limits{.vocab_size = kVocabSize,
                              .sequences = kMostRows,
                              .logits_rows = kMostRows,
                              .adjustments = 1200,
                              .flights = kFlights},
        &layout);
    auto arena = DeviceArena::Create(device_.get(), "test", layout.bytes());
    ASSERT_TRUE(arena.ok()) << arena.status();
    arena_ = *std::move(arena);
    ASSERT_TRUE(layout.PlaceIn(arena_.get()).ok());
    ASSERT_TRUE(sampler_->AllocatePinned(device_.get()).ok());
    grammars_.Prepare(1, Regex("[AB]*"));
    grammars_.Prepare(2, Regex("("));
  }

  // Random logits for each flight, and which are largest, into host_ids_.
  void MakeLogits() {
    std::normal_distribution<float> normal(0, 2);
    for (float& logit : host_logits_) logit = normal(random_);
  }

  absl::Span<const float> LogitsOf(int flight, int row) const {
    const float* begin =
        host_logits_.data() + (flight * kMostRows + row) * kStride;
    return {begin, kVocabSize};
  }

  // Until the ids are on their way to host_ids_[flight].
  void Launch(int flight, const Step& step, StepMasks* masks) {
    float* const logits = logits_ + flight * kMostRows * kStride;
    const size_t first = size_t{1} * flight * kMostRows * kStride;
    ASSERT_TRUE(stream_
                    ->CopyToDevice(reinterpret_cast<CudaApi::Address>(logits),
                                   host_logits_.data() + first,
                                   kMostRows * kStride * sizeof(float))
                    .ok());
    std::vector<uint32_t>& best = best_ids_[flight];
    for (size_t row = 0; row < step.rows.size(); ++row) {
      const absl::Span<const float> of = LogitsOf(flight, row);
      best[row] = Sampler::CanSample(of)
                      ? std::max_element(of.begin(), of.end()) - of.begin()
                      : cuda::kNoFiniteLogit;
    }
    const auto ids = reinterpret_cast<CudaApi::Address>(ids_);
    ASSERT_TRUE(
        stream_->CopyToDevice(ids, best.data(), kMostRows * sizeof(uint32_t))
            .ok());
    const absl::Status status =
        sampler_->Launch(flight, step.plan, step.rows, {logits, kStride}, ids_,
                         masks, stream_.get());
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(stream_
                    ->CopyToHost(host_ids_[flight].data(), ids,
                                 kMostRows * sizeof(uint32_t))
                    .ok());
  }

  // Results as an engine starts to fill them.
  static StepResult Started(const Step& step) {
    StepResult result;
    result.spans.resize(step.plan.spans.size());
    for (size_t i = 0; i < result.spans.size(); ++i) {
      const SequenceSpan& span = step.plan.spans[i];
      result.spans[i].prompt_logprobs.resize(span.prompt_logits_end -
                                             span.prompt_logits_begin);
    }
    return result;
  }

  StepResult Finished(int flight, const Step& step) {
    StepResult result = Started(step);
    sampler_->Finish(flight, host_ids_[flight].data(), &result);
    return result;
  }

  // What the host makes of the same.
  StepResult Expected(int flight, const Step& step) {
    StepMasks masks(&grammars_, kMaskOptions);
    masks.Begin(step.plan);
    RowSampler sampler(kVocabSize, /*max_rows=*/1, &pool_);
    StepResult result;
    sampler.Sample(
        step.plan, step.rows,
        [&](int row, absl::Span<float>) { return LogitsOf(flight, row); },
        &masks, &result);
    masks.End();
    return result;
  }

  static void ExpectSame(const v1::PositionLogprobs& found,
                         const v1::PositionLogprobs& expected) {
    EXPECT_EQ(found.token().token_id(), expected.token().token_id());
    EXPECT_EQ(found.token().rank(), expected.token().rank());
    EXPECT_FLOAT_EQ(found.token().logprob(), expected.token().logprob());
    ASSERT_EQ(found.top_size(), expected.top_size());
    for (int i = 0; i < found.top_size(); ++i) {
      EXPECT_EQ(found.top(i).token_id(), expected.top(i).token_id());
      EXPECT_FLOAT_EQ(found.top(i).logprob(), expected.top(i).logprob());
    }
  }

  static void ExpectSame(const StepResult& found, const StepResult& expected) {
    ASSERT_EQ(found.spans.size(), expected.spans.size());
    for (size_t i = 0; i < found.spans.size(); ++i) {
      SCOPED_TRACE(i);
      const SpanResult& a = found.spans[i];
      const SpanResult& b = expected.spans[i];
      ASSERT_EQ(a.is_finite, b.is_finite);
      if (!a.is_finite) continue;
      EXPECT_EQ(a.token, b.token);
      ASSERT_EQ(a.logprobs.size(), b.logprobs.size());
      if (!a.logprobs.empty()) ExpectSame(a.logprobs[0], b.logprobs[0]);
      ASSERT_EQ(a.prompt_logprobs.size(), b.prompt_logprobs.size());
      for (size_t j = 0; j < a.prompt_logprobs.size(); ++j) {
        ExpectSame(a.prompt_logprobs[j], b.prompt_logprobs[j]);
      }
    }
  }

  static constexpr StepMasks::Options kMaskOptions = {
      .max_spans = kMostRows, .vocab_size = kVocabSize, .has_thread = false};

  TestGpu gpu_;
  kernels::ThreadPool pool_{{.num_threads = 1}};
  GrammarStore grammars_{
      testing::MakeTinyTokenBytes(),
      {.vocab_size = kVocabSize, .eos_token_ids = {testing::kTinyEos}}};
  std::unique_ptr<CudaDriver> driver_;
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<CudaStream> stream_;
  std::unique_ptr<DeviceArena> arena_;
  std::unique_ptr<DeviceSampler> sampler_;
  float* logits_ = nullptr;
  uint32_t* ids_ = nullptr;
  std::mt19937 random_{kSeed};
  std::vector<float> host_logits_ =
      std::vector<float>(kFlights * kMostRows * kStride);
  std::vector<uint32_t> best_ids_[kFlights] = {
      std::vector<uint32_t>(kMostRows), std::vector<uint32_t>(kMostRows)};
  std::vector<uint32_t> host_ids_[kFlights] = {
      std::vector<uint32_t>(kMostRows), std::vector<uint32_t>(kMostRows)};
};

// One of each kind, and all of it in one request.
Step MixedStep(int more) {
  Step step;
  step.Add(MakeRequest(0));
  const Request drawn = MakeRequest(1);
  drawn->mutable_sampling()->set_seed(more);
  step.Add(drawn);
  const Request greedy_scored = MakeRequest(0);
  greedy_scored->mutable_sampling()->set_logprobs_plus_one(3);
  step.Add(greedy_scored);
  const Request prompt_scored = MakeRequest(0);
  prompt_scored->mutable_sampling()->set_prompt_logprobs_plus_one(5);
  step.Add(prompt_scored, /*scored=*/1);
  step.Add(MakeRequest(0, /*grammar=*/1));
  const Request all = MakeRequest(2, /*grammar=*/1);
  all->add_resume_token_ids(testing::TinyIds("A")[0]);
  v1::ResolvedSampling* sampling = all->mutable_sampling();
  sampling->set_top_k(40);
  sampling->set_top_p(0.9f);
  sampling->set_min_p(0.01f);
  sampling->set_repetition_penalty(1.5f);
  sampling->set_frequency_penalty(0.5f);
  sampling->set_min_tokens(9);
  sampling->add_stop_token_ids(testing::kTinyEos);
  sampling->add_bias_token_ids(testing::TinyIds("B")[0]);
  sampling->add_bias_values(1);
  sampling->set_logprobs_plus_one(4);
  step.Add(all);
  return step;
}

TEST_F(DeviceSamplerTest, MakesWhatTheHostMakesOfTheSameLogits) {
  for (int round = 0; round < 4; ++round) {
    MakeLogits();
    const Step step = MixedStep(round);
    StepMasks masks(&grammars_, kMaskOptions);
    masks.Begin(step.plan);
    Launch(0, step, &masks);
    ASSERT_TRUE(stream_->Synchronize().ok());
    masks.End();
    ExpectSame(Finished(0, step), Expected(0, step));
  }
}

TEST_F(DeviceSamplerTest, TwoStepsMayBeInFlight) {
  if (gpu_.fake() != nullptr) gpu_.fake()->Delay(kSeed, /*most_us=*/200);
  MakeLogits();
  Step steps[kFlights];
  for (int flight = 0; flight < kFlights; ++flight) {
    steps[flight] = MixedStep(flight);
    StepMasks masks(&grammars_, kMaskOptions);
    masks.Begin(steps[flight].plan);
    Launch(flight, steps[flight], &masks);
    masks.End();
  }
  ASSERT_TRUE(stream_->Synchronize().ok());
  for (int flight = 0; flight < kFlights; ++flight) {
    ExpectSame(Finished(flight, steps[flight]),
               Expected(flight, steps[flight]));
  }
}

// Whatever its request asks for, and in both steps in flight.
TEST_F(DeviceSamplerTest, ARowWithoutAFiniteLogitSpoilsItsSpanAlone) {
  if (gpu_.fake() != nullptr) gpu_.fake()->Delay(kSeed, /*most_us=*/200);
  const size_t num_rows = MixedStep(0).rows.size();
  for (size_t spoiled = 0; spoiled < num_rows; ++spoiled) {
    SCOPED_TRACE(spoiled);
    MakeLogits();
    Step steps[kFlights];
    for (int flight = 0; flight < kFlights; ++flight) {
      float* const row =
          host_logits_.data() + (flight * kMostRows + spoiled) * kStride;
      std::fill_n(row, kVocabSize, flight == 0 ? std::nanf("") : INFINITY);
      row[testing::TinyIds("A")[0]] = -INFINITY;
      steps[flight] = MixedStep(flight);
      StepMasks masks(&grammars_, kMaskOptions);
      masks.Begin(steps[flight].plan);
      Launch(flight, steps[flight], &masks);
      masks.End();
    }
    ASSERT_TRUE(stream_->Synchronize().ok());
    for (int flight = 0; flight < kFlights; ++flight) {
      const StepResult found = Finished(flight, steps[flight]);
      ExpectSame(found, Expected(flight, steps[flight]));
      for (int i = 0; i < static_cast<int>(found.spans.size()); ++i) {
        EXPECT_EQ(found.spans[i].is_finite,
                  i != steps[flight].rows[spoiled].span);
      }
    }
  }
}

TEST_F(DeviceSamplerTest, EndsASequenceAtItsGrammar) {
  MakeLogits();
  Step step;
  step.Add(MakeRequest(1, /*grammar=*/2));
  step.Add(MakeRequest(1));
  StepMasks masks(&grammars_, kMaskOptions);
  masks.Begin(step.plan);
  Launch(0, step, &masks);
  ASSERT_TRUE(stream_->Synchronize().ok());
  masks.End();
  const StepResult result = Finished(0, step);
  EXPECT_EQ(result.spans[0].token, kNoToken);
  EXPECT_NE(result.spans[1].token, kNoToken);
}

TEST_F(DeviceSamplerTest, LeavesToTheHostWhatItHasNoRoomFor) {
  MakeLogits();
  Step step;
  const Request request = MakeRequest(1);
  request->mutable_sampling()->set_repetition_penalty(2);
  for (int i = 0; i < 600; ++i) request->add_resume_token_ids(i % kVocabSize);
  const Request with_mask = std::make_shared<v1::AddRequest>(*request);
  with_mask->set_grammar(1);
  step.Add(request);
  step.Add(request);
  step.Add(with_mask);
  step.Add(MakeRequest(1));
  StepMasks masks(&grammars_, kMaskOptions);
  masks.Begin(step.plan);
  Launch(0, step, &masks);
  ASSERT_TRUE(stream_->Synchronize().ok());
  masks.End();
  const bool is_taken[] = {true, true, false, true};
  const StepResult found = Finished(0, step);
  Step taken;  // as the host can not go on with that grammar
  taken.Add(request);
  taken.Add(request);
  const StepResult expected = Expected(0, taken);
  for (int row = 0; row < 4; ++row) {
    EXPECT_EQ(sampler_->Takes(0, row), is_taken[row]) << row;
    if (row < 2) {
      EXPECT_EQ(found.spans[row].token, expected.spans[row].token);
    }
  }
  EXPECT_EQ(found.spans[2].token, 0);
}

}  // namespace
}  // namespace lockstep
