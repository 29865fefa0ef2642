#include "worker/sampling/logit_adjustments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "worker/core/host_part.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

class LogitAdjustmentsTest : public ::testing::Test {
 protected:
  LogitAdjustmentsTest() {
    request_->add_prompt_token_ids(0);
    request_->add_prompt_token_ids(1);
    sampling().set_repetition_penalty(1);
  }

  v1::ResolvedSampling& sampling() { return *request_->mutable_sampling(); }

  // Logits 2, -2, 4, 6, 0 after the prompt 0 1 and `output`.
  std::vector<float> Adjusted(const std::vector<uint32_t>& output) {
    Sequence sequence({1, 0}, request_);
    for (const uint32_t id : output) sequence.AppendToken(id);
    std::vector<float> logits = {2, -2, 4, 6, 0};
    const std::vector<float> before = logits;
    adjustments_.Apply(sequence, absl::MakeSpan(logits));
    EXPECT_TRUE(ChangesLogits(sequence) || logits == before);
    return logits;
  }

  std::shared_ptr<v1::AddRequest> request_ = std::make_shared<v1::AddRequest>();
  LogitAdjustments adjustments_{5};
};

TEST_F(LogitAdjustmentsTest, NeutralParametersChangeNothing) {
  EXPECT_THAT(Adjusted({3, 3}), ElementsAre(2, -2, 4, 6, 0));
}

TEST_F(LogitAdjustmentsTest, RepetitionScalesIdsOfPromptAndOutputOnce) {
  sampling().set_repetition_penalty(2);
  EXPECT_THAT(Adjusted({0, 3, 3, 4}), ElementsAre(1, -4, 4, 3, 0));
}

TEST_F(LogitAdjustmentsTest, PresenceLowersIdsOfTheOutput) {
  sampling().set_presence_penalty(0.5f);
  EXPECT_THAT(Adjusted({1, 3, 3}), ElementsAre(2, -2.5f, 4, 5.5f, 0));
}

TEST_F(LogitAdjustmentsTest, FrequencyLowersByTheCount) {
  sampling().set_frequency_penalty(-0.5f);
  EXPECT_THAT(Adjusted({1, 3, 3}), ElementsAre(2, -1.5f, 4, 7, 0));
}

TEST_F(LogitAdjustmentsTest, BiasComesFirstThenRepetitionThenTheOthers) {
  sampling().add_bias_token_ids(1);
  sampling().add_bias_values(6);
  sampling().set_repetition_penalty(2);
  sampling().set_presence_penalty(1);
  sampling().set_frequency_penalty(0.25f);
  // (-2 + 6) / 2 - 1 - 0.25 * 2
  EXPECT_THAT(Adjusted({1, 1}), ElementsAre(1, 0.5f, 4, 6, 0));
}

TEST_F(LogitAdjustmentsTest, MasksStopIdsUntilMinTokens) {
  sampling().add_stop_token_ids(2);
  sampling().add_stop_token_ids(4);
  sampling().set_min_tokens(2);
  EXPECT_THAT(Adjusted({3}),
              ElementsAre(2, -2, kMinusInfinity, 6, kMinusInfinity));
  EXPECT_THAT(Adjusted({3, 3}), ElementsAre(2, -2, 4, 6, 0));
}

TEST_F(LogitAdjustmentsTest, ForgetsTheLastCall) {
  sampling().set_presence_penalty(1);
  const std::vector<float> first = Adjusted({3, 4});
  Adjusted({0, 1, 2});
  EXPECT_EQ(Adjusted({3, 4}), first);
}

TEST_F(LogitAdjustmentsTest, KeepsInfinitiesNumbers) {
  sampling().set_repetition_penalty(1e-40f);
  sampling().set_presence_penalty(2);
  for (const float logit : Adjusted({0, 1, 4})) EXPECT_EQ(logit, logit);
}

}  // namespace
}  // namespace lockstep
