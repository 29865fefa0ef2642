#include "worker/sampling/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

namespace lockstep {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::shared_ptr<v1::AddRequest> NeutralRequest(float temperature) {
  auto request = std::make_shared<v1::AddRequest>();
  request->add_prompt_token_ids(0);
  v1::ResolvedSampling* sampling = request->mutable_sampling();
  sampling->set_temperature(temperature);
  sampling->set_top_p(1);
  sampling->set_repetition_penalty(1);
  sampling->set_seed(42);
  return request;
}

uint32_t SampleOnce(const std::vector<float>& logits,
                    std::shared_ptr<const v1::AddRequest> request) {
  Sampler sampler(static_cast<int>(logits.size()));
  return sampler.Sample(logits, Sequence({1, 0}, std::move(request)));
}

TEST(SamplerTest, GreedyTakesTheLargestAndTheLowestIdOfTies) {
  struct {
    std::vector<float> logits;
    uint32_t token;
  } rows[] = {
      {{1, 3, 2, 3}, 1},
      {{kNan, -5, kNan, -4}, 3},
      {{1, kInfinity, kInfinity}, 1},
      {{-kInfinity, -1e38f}, 1},
      {{-0.0f, 0.0f}, 0},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(SampleOnce(row.logits, NeutralRequest(0)), row.token);
  }
}

TEST(SamplerTest, CanNotSampleWhereNoLogitIsFinite) {
  EXPECT_FALSE(Sampler::CanSample({kNan, kNan, kNan}));
  EXPECT_FALSE(Sampler::CanSample({kNan, -kInfinity, kInfinity}));
  EXPECT_FALSE(Sampler::CanSample({-kInfinity}));
  EXPECT_TRUE(Sampler::CanSample({kNan, kInfinity, -1e38f}));
}

// Whatever a request asks for, of a row that is NaN but for some.
TEST(SamplerTest, NeverChoosesWhatIsNoNumber) {
  std::vector<float> logits(300, kNan);
  logits[70] = -3;
  logits[290] = -2;
  Sampler sampler(300);
  for (const float temperature : {0.0f, 1.0f, 50.0f}) {
    for (const uint32_t min_tokens : {0, 9}) {
      for (const float penalty : {1.0f, 1.5f}) {
        auto request = NeutralRequest(temperature);
        v1::ResolvedSampling* const sampling = request->mutable_sampling();
        sampling->set_min_tokens(min_tokens);
        sampling->set_repetition_penalty(penalty);
        sampling->add_bias_token_ids(0);
        sampling->add_bias_values(100);
        sampling->add_stop_token_ids(70);
        sampling->add_stop_token_ids(290);
        Sequence sequence({1, 0}, request);
        for (int i = 0; i < 5; ++i) {
          const uint32_t token = sampler.Sample(logits, sequence);
          EXPECT_TRUE(token == 70 || token == 290) << token;
          sequence.AppendToken(token);
        }
      }
    }
  }
}

TEST(SamplerTest, NeverDrawsWhatHasNoProbability) {
  const std::vector<float> logits = {kNan, 1, -kInfinity, 1, kNan};
  Sampler sampler(5);
  Sequence sequence({1, 0}, NeutralRequest(2));
  for (int i = 0; i < 200; ++i) {
    const uint32_t token = sampler.Sample(logits, sequence);
    EXPECT_TRUE(token == 1 || token == 3) << token;
    sequence.AppendToken(token);
  }
}

TEST(SamplerTest, TopKOfOneAndTinyTopPAreGreedy) {
  const std::vector<float> logits = {1, 1.001f, 1.001f, 0};
  auto top_k = NeutralRequest(5);
  top_k->mutable_sampling()->set_top_k(1);
  EXPECT_EQ(SampleOnce(logits, top_k), 1);
  auto top_p = NeutralRequest(5);
  top_p->mutable_sampling()->set_top_p(1e-6f);
  EXPECT_EQ(SampleOnce(logits, top_p), 1);
  auto min_p = NeutralRequest(0.0001f);
  min_p->mutable_sampling()->set_min_p(1);
  EXPECT_LT(SampleOnce(logits, min_p), 3);
}

// The tokens of a sequence that starts with `resumed` as output.
std::vector<uint32_t> Continue(std::vector<uint32_t> resumed, int size,
                               uint32_t choice, Sampler* sampler) {
  auto request = NeutralRequest(1);
  request->mutable_resume_token_ids()->Assign(resumed.begin(), resumed.end());
  Sequence sequence({7, choice}, request);
  const std::vector<float> logits = {0.5f, 1, 0, 0.2f, 0.7f, 0.1f, 0.9f, 1};
  while (sequence.num_output_tokens() < size) {
    sequence.AppendToken(sampler->Sample(logits, sequence));
  }
  return {sequence.output().begin(), sequence.output().end()};
}

TEST(SamplerTest, ResumesWhereItWouldHaveBeen) {
  Sampler sampler(8);
  const std::vector<uint32_t> whole = Continue({}, 40, 0, &sampler);
  for (int done : {1, 7, 39}) {
    EXPECT_EQ(Continue({whole.begin(), whole.begin() + done}, 40, 0, &sampler),
              whole);
  }
}

TEST(SamplerTest, ChoicesDiffer) {
  Sampler sampler(8);
  EXPECT_NE(Continue({}, 40, 0, &sampler), Continue({}, 40, 1, &sampler));
}

TEST(SamplerTest, DependsOnNothingItSampledBefore) {
  Sampler used(8);
  Continue({}, 10, 3, &used);
  Sampler fresh(8);
  EXPECT_EQ(Continue({}, 40, 0, &used), Continue({}, 40, 0, &fresh));
}

TEST(SamplerTest, DrawsInProportion) {
  // Softmax at temperature 2 of twice the logarithms of 1, 2, 3, 4 is a tenth
  // of each.
  std::vector<float> logits;
  for (int i = 1; i <= 4; ++i) logits.push_back(2 * std::log(i));
  Sampler sampler(4);
  Sequence sequence({1, 0}, NeutralRequest(2));
  constexpr int kDraws = 20000;
  std::vector<int> counts(4);
  for (int i = 0; i < kDraws; ++i) {
    const uint32_t token = sampler.Sample(logits, sequence);
    ++counts[token];
    sequence.AppendToken(token);
  }
  double chi_square = 0;
  for (int i = 0; i < 4; ++i) {
    const double expected = kDraws * (i + 1) / 10.0;
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  // Above it lies one in a million with 3 degrees of freedom.
  EXPECT_LT(chi_square, 30.7);
}

TEST(SamplerTest, AppliesWhatTheRequestAdjusts) {
  const std::vector<float> logits = {3, 2, 1};
  auto request = NeutralRequest(0);
  request->mutable_sampling()->add_bias_token_ids(2);
  request->mutable_sampling()->add_bias_values(5);
  EXPECT_EQ(SampleOnce(logits, request), 2);
  request->mutable_sampling()->add_stop_token_ids(2);
  request->mutable_sampling()->set_min_tokens(1);
  EXPECT_EQ(SampleOnce(logits, request), 0);
}

TEST(SamplerTest, LogprobsAreOfTheLogitsAsTheyAre) {
  const std::vector<float> logits = {0, kNan, std::log(3.0f)};
  Sampler sampler(3);
  const v1::PositionLogprobs logprobs = sampler.Logprobs(logits, 0, 1);
  EXPECT_NEAR(logprobs.token().logprob(), std::log(0.25), 1e-6);
  EXPECT_EQ(logprobs.token().rank(), 2);
  ASSERT_EQ(logprobs.top_size(), 1);
  EXPECT_EQ(logprobs.top(0).token_id(), 2);
  EXPECT_EQ(sampler.Logprobs(logits, 1, 0).token().logprob(), -kInfinity);
}

TEST(SamplerTest, NeverChoosesWhatTheMaskForbids) {
  const std::vector<uint32_t> mask = {0b01100};
  const std::vector<std::vector<float>> rows = {
      {9, 9, 1, 2, 9},
      {kInfinity, 9, -kInfinity, kNan, 9},
      {kNan, 5, kNan, kNan, kNan}};
  for (const float temperature : {0.0f, 1.0f, 50.0f}) {
    for (const auto& logits : rows) {
      Sampler sampler(5);
      auto request = NeutralRequest(temperature);
      request->mutable_sampling()->set_top_k(2);
      request->mutable_sampling()->add_bias_token_ids(4);
      request->mutable_sampling()->add_bias_values(100);
      Sequence sequence({1, 0}, request);
      for (int i = 0; i < 50; ++i) {
        const uint32_t token = sampler.Sample(logits, sequence, mask);
        EXPECT_TRUE(token == 2 || token == 3) << token;
        sequence.AppendToken(token);
      }
    }
  }
}

TEST(SamplerTest, MinTokensGiveWayWhereTheMaskLeavesNothingElse) {
  const std::vector<float> logits = {3, 2, 1};
  auto request = NeutralRequest(0);
  request->mutable_sampling()->add_stop_token_ids(1);
  request->mutable_sampling()->set_min_tokens(9);
  Sampler sampler(3);
  const Sequence sequence({1, 0}, request);
  const std::vector<uint32_t> both = {0b110}, stop = {0b010};
  EXPECT_EQ(sampler.Sample(logits, sequence, both), 2);
  EXPECT_EQ(sampler.Sample(logits, sequence, stop), 1);
}

TEST(SamplerTest, LogprobsAreAmongWhatTheMaskAllows) {
  const std::vector<float> logits = {9, 0, std::log(3.0f)};
  const std::vector<uint32_t> mask = {0b110};
  Sampler sampler(3);
  const v1::PositionLogprobs logprobs = sampler.Logprobs(logits, 1, 3, mask);
  EXPECT_NEAR(logprobs.token().logprob(), std::log(0.25), 1e-6);
  EXPECT_EQ(logprobs.token().rank(), 2);
  ASSERT_EQ(logprobs.top_size(), 2);
  EXPECT_EQ(logprobs.top(0).token_id(), 2);
  EXPECT_EQ(logprobs.top(1).token_id(), 1);
}

void AddBadWord(v1::AddRequest* request, const std::vector<uint32_t>& ids) {
  v1::ResolvedSampling& sampling = *request->mutable_sampling();
  for (const uint32_t id : ids) sampling.add_bad_word_token_ids(id);
  sampling.add_bad_word_sizes(static_cast<uint32_t>(ids.size()));
}

TEST(SamplerTest, OnlyAllowedIdsAreChosen) {
  const std::vector<float> logits = {9, 1, 7, 2, kNan, -kInfinity};
  struct {
    std::vector<uint32_t> allowed;
    uint32_t mask;  // a grammar's, 0: none
    uint32_t token;
  } rows[] = {
      {{1, 3}, 0, 3},     {{1}, 0, 1},
      {{5}, 0, 5},         // though it has no probability
      {{1, 3}, 0b10, 1},   // the grammar's, too
      {{1, 3}, 0b101, 0},  // nothing would be left
  };
  for (const auto& row : rows) {
    for (const float temperature : {0.f, 0.01f}) {
      const auto request = NeutralRequest(temperature);
      for (const uint32_t id : row.allowed) {
        request->mutable_sampling()->add_allowed_token_ids(id);
      }
      Sampler sampler(6);
      const Sequence sequence({1, 0}, request);
      const TokenMask mask =
          row.mask == 0 ? TokenMask() : TokenMask(&row.mask, 1);
      EXPECT_EQ(sampler.Sample(logits, sequence, mask), row.token);
      // Those of the model, whatever is allowed.
      EXPECT_EQ(sampler.Logprobs(logits, row.token, 1).top(0).token_id(), 0);
    }
  }
}

TEST(SamplerTest, AllowedIdsGoBeforeBadWordsAndMinTokens) {
  const auto request = NeutralRequest(0);
  v1::ResolvedSampling& sampling = *request->mutable_sampling();
  sampling.add_allowed_token_ids(1);
  sampling.add_allowed_token_ids(2);
  AddBadWord(request.get(), {1});
  sampling.set_min_tokens(1);
  sampling.add_stop_token_ids(2);
  EXPECT_EQ(SampleOnce({5, 4, 3, 9}, request), 1);  // both give way
}

// With the prompt {0}, of which it is no part.
TEST(SamplerTest, ABadWordIsNotCompleted) {
  const std::vector<float> logits = {5, 4, 3, 1};
  struct {
    std::vector<std::vector<uint32_t>> words;
    std::vector<uint32_t> output;
    uint32_t token;
  } rows[] = {
      {{{0}}, {}, 1},
      {{{0}, {1}}, {}, 2},
      {{{3, 0}}, {}, 0},
      {{{3, 0}}, {3}, 1},
      {{{3, 0}}, {3, 2}, 0},
      {{{3, 2, 0}}, {3, 2}, 1},
      {{{3, 2, 0}}, {2}, 0},  // longer than the output
      {{{3, 0}, {2, 1}}, {2}, 0},
      {{{0, 0}}, {}, 0},  // the prompt is none of it
      {{{0, 0}}, {0}, 1},
      {{{2, 3, 0}, {3, 1}, {0}}, {2, 3}, 2},
  };
  for (const auto& row : rows) {
    for (const float temperature : {0.f, 0.01f}) {
      const auto request = NeutralRequest(temperature);
      for (const auto& word : row.words) AddBadWord(request.get(), word);
      Sequence sequence({1, 0}, request);
      for (const uint32_t token : row.output) sequence.AppendToken(token);
      Sampler sampler(4);
      EXPECT_EQ(sampler.Sample(logits, sequence), row.token);
    }
  }
}

}  // namespace
}  // namespace lockstep
