// The kernels that choose and score tokens, against the worker's sampler: the
// same tokens, ranks and log-probabilities of the same logits.
#include "worker/cuda_engine/sampling/sampling_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/argmax.h"
#include "kernels/cuda/kernel_run.h"
#include "kernels/cuda/sampling/adjust.h"
#include "kernels/cuda/sampling/logprobs.h"
#include "kernels/cuda/sampling/sample.h"
#include "proto/group.pb.h"
#include "proto/sampling.pb.h"
#include "worker/core/sequence.h"
#include "worker/sampling/sampler.h"

namespace lockstep {
namespace {

constexpr unsigned kSeed = 8;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// One row of logits, and who chooses from it.
struct Case {
  std::vector<float> logits;
  std::shared_ptr<v1::AddRequest> request;
  std::unique_ptr<Sequence> sequence;
  std::vector<uint32_t> mask;

  std::string Name() const {
    return request->sampling().ShortDebugString() + ", " +
           std::to_string(sequence->num_output_tokens()) +
           " output tokens, a mask of " + std::to_string(mask.size());
  }
};

// What the kernels made of the cases, which are rows of one matrix.
struct Choices {
  std::vector<uint32_t> tokens;
  std::vector<v1::PositionLogprobs> logprobs;
};

class Chooser {
 public:
  explicit Chooser(int vocab_size)
      : vocab_size_(vocab_size),
        rows_({.vocab_size = vocab_size,
               .rows = kMostRows,
               .choices = kMostRows,
               .adjustments = kMostRows * 2048}) {}

  static constexpr int kMostRows = 64;

  // In one order of threads.
  Choices Choose(const std::vector<Case>& cases,
                 const emulation::Conduct& conduct = {}) {
    rows_.Clear();
    std::vector<float> logits;
    for (size_t i = 0; i < cases.size(); ++i) {
      const Case& of = cases[i];
      logits.insert(logits.end(), of.logits.begin(), of.logits.end());
      logits.insert(logits.end(), kPadding, 1e9f);  // no logits
      const uint32_t place = of.sequence->num_output_tokens();
      EXPECT_TRUE(rows_.HasRoomFor(*of.sequence, place));
      rows_.AddChoice(static_cast<int>(i), *of.sequence, place, of.mask);
    }
    const int64_t stride = vocab_size_ + kPadding;
    std::vector<float> kept(rows_.adjustments().size());
    std::vector<cuda::RowLogprobs> scores(rows_.scored().size());
    const cuda::AdjustArgs adjust = {
        .logits = logits.data(),
        .stride = stride,
        .vocabulary = vocab_size_,
        .rows = rows_.adjusted().data(),
        .count = static_cast<int>(rows_.adjusted().size()),
        .adjustments = rows_.adjustments().data(),
        .masks = rows_.masks().data(),
        .kept = kept.data()};
    // The greedy choice, which another kernel makes.
    std::vector<uint32_t> tokens;
    for (const Case& of : cases) {
      tokens.push_back(Sampler::CanSample(of.logits)
                           ? Sampler(vocab_size_).Sample(of.logits, Greedy())
                           : cuda::kNoFiniteLogit);
    }
    const auto run = [&](uint32_t* out) -> cuda::CudaError {
      cuda::CudaError error = cuda::AdjustLogits(adjust, nullptr);
      if (error != cuda::kCudaSuccess) return error;
      error = cuda::SampleTokens(
          logits.data(), stride, vocab_size_, rows_.sampled().data(),
          static_cast<int>(rows_.sampled().size()), out, nullptr);
      if (error != cuda::kCudaSuccess) return error;
      error = cuda::RestoreLogits(adjust, nullptr);
      if (error != cuda::kCudaSuccess) return error;
      return cuda::ScoreRows(
          logits.data(), stride, vocab_size_, rows_.scored().data(),
          static_cast<int>(rows_.scored().size()), out, scores.data(), nullptr);
    };
    Choices choices;
    choices.tokens = cuda::RunIn(conduct, tokens, run);
    EXPECT_EQ(choices.tokens.size(), cases.size()) << "a kernel did not end";
    if (choices.tokens.size() != cases.size()) return choices;
    for (size_t i = 0; i < scores.size(); ++i) {
      const int row = rows_.scored()[i].row;
      choices.logprobs.push_back(
          LogprobsOf(scores[i], choices.tokens[row], !cases[row].mask.empty()));
    }
    return choices;
  }

 private:
  static constexpr int kPadding = 3;

  static Sequence Greedy() {
    auto request = std::make_shared<v1::AddRequest>();
    request->add_prompt_token_ids(0);
    request->mutable_sampling()->set_repetition_penalty(1);
    return Sequence({1, 0}, std::move(request));
  }

  const int vocab_size_;
  SamplingRows rows_;
};

void ExpectSame(const v1::TokenLogprob& found,
                const v1::TokenLogprob& expected) {
  EXPECT_EQ(found.token_id(), expected.token_id());
  EXPECT_EQ(found.rank(), expected.rank());
  if (found.logprob() == expected.logprob()) return;  // infinite, too
  // The sampler's sum is rounded at each of up to a thousand blocks and 64 of
  // their logits, to 2^-53; then both are to fp32.
  EXPECT_NEAR(found.logprob(), expected.logprob(),
              std::abs(expected.logprob()) * 0x1p-23 + 1100 * 0x1p-53);
}

void ExpectWhatTheSamplerChooses(const std::vector<Case>& cases,
                                 const Choices& found) {
  ASSERT_EQ(found.tokens.size(), cases.size());
  auto logprobs = found.logprobs.begin();
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& of = cases[i];
    SCOPED_TRACE(of.Name());
    Sampler sampler(static_cast<int>(of.logits.size()));
    const uint32_t asked = of.request->sampling().logprobs_plus_one();
    if (!Sampler::CanSample(of.logits)) {
      EXPECT_EQ(found.tokens[i], cuda::kNoFiniteLogit);
      if (asked > 0) ++logprobs;
      continue;
    }
    EXPECT_EQ(found.tokens[i],
              sampler.Sample(of.logits, *of.sequence, of.mask));
    if (asked == 0) continue;
    ASSERT_NE(logprobs, found.logprobs.end());
    const v1::PositionLogprobs expected =
        sampler.Logprobs(of.logits, found.tokens[i], asked - 1, of.mask);
    ExpectSame(logprobs->token(), expected.token());
    ASSERT_EQ(logprobs->top_size(), expected.top_size());
    for (int j = 0; j < expected.top_size(); ++j) {
      ExpectSame(logprobs->top(j), expected.top(j));
    }
    ++logprobs;
  }
}

class Generator {
 public:
  Generator() { std::printf("seed %u\n", kSeed); }

  std::vector<Case> Cases(int vocab_size, int count) {
    std::vector<Case> cases;
    for (int i = 0; i < count; ++i) cases.push_back(MakeCase(vocab_size));
    return cases;
  }

  emulation::Conduct AnyOrder() {
    return {.order = emulation::kOrders[Below(std::size(emulation::kOrders))]};
  }

 private:
  uint32_t Below(uint32_t limit) { return random_() % limit; }

  template <typename T, size_t kCount>
  T Any(const T (&values)[kCount]) {
    return values[Below(kCount)];
  }

  std::vector<float> Logits(int vocab_size) {
    std::normal_distribution<float> normal;
    std::vector<float> logits(vocab_size);
    const float scale = Any({0.0f, 1e-3f, 1.0f, 3.0f, 10.0f, 1e30f});
    for (float& logit : logits) logit = scale * normal(random_) - 2;
    switch (Below(6)) {
      case 0:  // many are equal
        for (float& logit : logits) logit = std::round(logit * 2) / 2;
        break;
      case 1:  // one is far above
        logits[Below(vocab_size)] += 30;
        break;
      case 2:
        for (float& logit : logits) {
          if (Below(4) == 0) logit = Any({kNan, -kInfinity, 0.0f, -0.0f});
        }
        break;
      case 3:  // few or none are possible
        for (float& logit : logits) {
          if (Below(300) != 0) logit = Any({kNan, -kInfinity});
        }
        break;
      case 4:
        for (int i = 0; i < 3; ++i) logits[Below(vocab_size)] = kInfinity;
        break;
      default:
        break;
    }
    return logits;
  }

  std::vector<uint32_t> Mask(int vocab_size) {
    std::vector<uint32_t> mask((vocab_size + 31) / 32);
    const uint32_t one_of = Any({1u, 2u, 50u, 1000000u});
    const uint32_t always = Below(vocab_size);
    for (int id = 0; id < vocab_size; ++id) {
      const bool is_allowed = id == always || Below(one_of) == 0;
      mask[id / 32] |= (is_allowed ? 1u : 0u) << (id % 32);
    }
    return mask;
  }

  Case MakeCase(int vocab_size) {
    Case made;
    made.logits = Logits(vocab_size);
    const uint32_t few = std::min(vocab_size, 40);  // so that ids come again
    made.request = std::make_shared<v1::AddRequest>();
    v1::AddRequest& request = *made.request;
    for (int i = 0; i < 5; ++i) request.add_prompt_token_ids(Below(few));
    const int output = Any({0, 1, 12, 600});
    for (int i = 0; i < output; ++i) request.add_resume_token_ids(Below(few));
    v1::ResolvedSampling& sampling = *request.mutable_sampling();
    sampling.set_seed(uint64_t{random_()} << 32 | random_());
    sampling.set_temperature(
        Any({0.0f, 1e-3f, 0.7f, 1.0f, 1.0f, 2.0f, 100.0f}));
    const uint32_t size = vocab_size;
    sampling.set_top_k(Any({0u, 0u, 1u, 2u, 50u, 511u, 512u, 513u, 1500u,
                            size - 1, size, size + 5, 0xffffffffu}));
    sampling.set_top_p(
        Any({1.0f, 1.0f, 1e-6f, 0.1f, 0.5f, 0.9f, 0.99f, 0.999999f}));
    sampling.set_min_p(Any({0.0f, 0.0f, 1e-10f, 0.05f, 0.5f, 1.0f}));
    sampling.set_repetition_penalty(Any({1.0f, 1.0f, 1.3f, 0.01f, 100.0f}));
    sampling.set_presence_penalty(Any({0.0f, 0.0f, 2.0f, -0.7f}));
    sampling.set_frequency_penalty(Any({0.0f, 0.0f, 0.1f, -2.0f}));
    if (Below(3) == 0) {
      const uint32_t biases = std::min<uint32_t>(few, Any({1, 30}));
      for (uint32_t id = 0; id < biases; ++id) {
        sampling.add_bias_token_ids(id);
        sampling.add_bias_values(Any({-100.0f, 0.0f, 1.5f, 100.0f}));
      }
    }
    sampling.set_min_tokens(Any({0, 5}));
    for (uint32_t id = 0; id < few; id += 1 + Below(20)) {
      sampling.add_stop_token_ids(id);
    }
    sampling.set_logprobs_plus_one(Any({0u, 0u, 1u, 4u, 21u}));
    if (Below(3) == 0) made.mask = Mask(vocab_size);
    made.sequence =
        std::make_unique<Sequence>(SequenceId{1, Below(3)}, made.request);
    return made;
  }

  std::mt19937 random_{kSeed};
};

TEST(SamplingRows, ChooseAsTheSampler) {
  Generator generator;
  const struct {
    int vocab_size, rows;
  } shapes[] = {{1, 10},   {2, 10},    {7, 20},    {33, 20},
                {512, 25}, {1000, 30}, {5000, 25}, {49152, 15}};
  for (const auto& shape : shapes) {
    SCOPED_TRACE(shape.vocab_size);
    Chooser chooser(shape.vocab_size);
    const auto cases = generator.Cases(shape.vocab_size, shape.rows);
    ExpectWhatTheSamplerChooses(cases,
                                chooser.Choose(cases, generator.AnyOrder()));
    if (HasFailure()) return;
  }
}

TEST(SamplingRows, ARowAloneChoosesWhatItChoosesAmongOthers) {
  Generator generator;
  Chooser chooser(900);
  std::vector<Case> cases = generator.Cases(900, 10);
  const Choices together = chooser.Choose(cases);
  for (size_t i = 0; i < cases.size(); ++i) {
    std::vector<Case> alone;
    alone.push_back(std::move(cases[i]));
    EXPECT_EQ(chooser.Choose(alone).tokens[0], together.tokens[i]);
  }
}

TEST(SamplingRows, GreedyChoicesOfLogitsAsTheyAreNeedNoKernel) {
  SamplingRows rows(
      {.vocab_size = 9, .rows = 1, .choices = 1, .adjustments = 9});
  auto request = std::make_shared<v1::AddRequest>();
  request->mutable_sampling()->set_repetition_penalty(1);
  rows.AddChoice(0, Sequence({1, 0}, request), 0, {});
  EXPECT_TRUE(rows.sampled().empty());
  EXPECT_TRUE(rows.adjusted().empty());
  EXPECT_TRUE(rows.scored().empty());
}

TEST(SamplingRows, SaysWhatItHasNoRoomFor) {
  SamplingRows rows(
      {.vocab_size = 50, .rows = 3, .choices = 3, .adjustments = 8});
  auto request = std::make_shared<v1::AddRequest>();
  for (uint32_t id : {3, 4, 3, 3, 5}) request->add_prompt_token_ids(id);
  request->mutable_sampling()->set_repetition_penalty(2);
  const Sequence sequence({1, 0}, request);
  ASSERT_TRUE(rows.HasRoomFor(sequence, 0));
  rows.AddChoice(0, sequence, 0, {});
  EXPECT_EQ(rows.adjustments().size(), 3);
  ASSERT_TRUE(rows.HasRoomFor(sequence, 0));
  rows.AddChoice(1, sequence, 0, {});
  EXPECT_FALSE(rows.HasRoomFor(sequence, 0));
  rows.Clear();
  EXPECT_TRUE(rows.HasRoomFor(sequence, 0));
  request->mutable_sampling()->add_allowed_token_ids(3);
  EXPECT_FALSE(rows.HasRoomFor(sequence, 0));  // the host's
}

}  // namespace
}  // namespace lockstep
