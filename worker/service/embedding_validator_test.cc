#include <absl/status/status.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "proto/worker.pb.h"
#include "worker/service/request_validator.h"

namespace lockstep {
namespace {

RequestLimits Limits() {
  RequestLimits limits;
  limits.vocabulary_size = 50;
  limits.max_context = 20;
  v1::EmbeddingInfo& info = limits.embedding.emplace();
  info.set_pooling(v1::MEAN);
  info.set_normalize(true);
  info.set_dimensions(64);
  return limits;
}

v1::WorkerGenerateRequest GoodRequest() {
  v1::WorkerGenerateRequest request;
  for (uint32_t id : {5, 6, 7}) request.add_prompt_token_ids(id);
  request.mutable_embedding();
  return request;
}

std::string Refusal(const v1::WorkerGenerateRequest& request,
                    const RequestLimits& limits = Limits()) {
  const auto add = ValidateRequest(request, limits, /*drawn_seed=*/1);
  EXPECT_TRUE(absl::IsInvalidArgument(add.status())) << add.status();
  return std::string(add.status().message());
}

TEST(EmbeddingValidatorTest, DefaultsAreTheModels) {
  const auto add = ValidateRequest(GoodRequest(), Limits(), 1);
  ASSERT_TRUE(add.ok()) << add.status();
  EXPECT_EQ(add->embedding().pooling(), v1::MEAN);
  EXPECT_TRUE(add->embedding().normalize());
  EXPECT_EQ(add->embedding().dimensions(), 64);
  EXPECT_EQ(add->sampling().n(), 1);
}

TEST(EmbeddingValidatorTest, WhatARequestSaysWins) {
  v1::WorkerGenerateRequest request = GoodRequest();
  request.mutable_embedding()->set_pooling(v1::LAST_TOKEN);
  request.mutable_embedding()->set_normalize(false);
  request.set_bypass_prefix_cache(true);
  request.set_priority(3);
  const auto add = ValidateRequest(request, Limits(), 1);
  ASSERT_TRUE(add.ok()) << add.status();
  EXPECT_EQ(add->embedding().pooling(), v1::LAST_TOKEN);
  EXPECT_FALSE(add->embedding().normalize());
  EXPECT_TRUE(add->bypass_prefix_cache());
  EXPECT_EQ(add->priority(), 3);
}

TEST(EmbeddingValidatorTest, FewerDimensionsAreForModelsThatHaveThem) {
  v1::WorkerGenerateRequest request = GoodRequest();
  request.mutable_embedding()->set_dimensions(32);
  EXPECT_EQ(Refusal(request),
            "embedding.dimensions is 32, it must be 64: the model's files do "
            "not say that it was made for fewer.");
  RequestLimits limits = Limits();
  limits.embedding->add_fewer_dimensions(16);
  EXPECT_EQ(Refusal(request, limits),
            "embedding.dimensions is 32, it must be one of 16 and 64.");
  limits.embedding->add_fewer_dimensions(32);
  EXPECT_EQ(ValidateRequest(request, limits, 1)->embedding().dimensions(), 32);
  limits = Limits();
  limits.embedding->set_any_dimensions(true);
  EXPECT_EQ(ValidateRequest(request, limits, 1)->embedding().dimensions(), 32);
  for (const uint32_t dimensions : {0, 65}) {
    request.mutable_embedding()->set_dimensions(dimensions);
    EXPECT_THAT(Refusal(request, limits),
                ::testing::HasSubstr("it must be from 1 to 64."));
  }
}

TEST(EmbeddingValidatorTest, AnUnknownPoolingIsRefused) {
  v1::WorkerGenerateRequest request = GoodRequest();
  request.mutable_embedding()->set_pooling(v1::POOLING_UNSPECIFIED);
  EXPECT_EQ(Refusal(request),
            "embedding.pooling is 0, it must be LAST_TOKEN or MEAN.");
  request.mutable_embedding()->set_pooling(static_cast<v1::Pooling>(3));
  EXPECT_EQ(Refusal(request),
            "the value 3 of embedding.pooling is not one of "
            "lockstep.v1.Pooling.");
}

TEST(EmbeddingValidatorTest, WhatIsForTokensAloneIsRefusedByName) {
  v1::WorkerGenerateRequest request = GoodRequest();
  request.mutable_sampling();
  EXPECT_THAT(Refusal(request), ::testing::StartsWith("sampling is set"));
  request = GoodRequest();
  request.add_resume_token_ids(1);
  EXPECT_THAT(Refusal(request),
              ::testing::StartsWith("resume_token_ids is set"));
  request = GoodRequest();
  request.add_resume_token_counts(0);
  EXPECT_THAT(Refusal(request),
              ::testing::StartsWith("resume_token_counts is set"));
  request = GoodRequest();
  request.add_ended_choices(0);
  EXPECT_THAT(Refusal(request), ::testing::StartsWith("ended_choices is set"));
  request = GoodRequest();
  request.mutable_grammar()->set_regex("a");
  EXPECT_THAT(Refusal(request), ::testing::StartsWith("grammar is set"));
}

TEST(EmbeddingValidatorTest, AModelWithoutEmbeddingsSaysWhy) {
  RequestLimits limits = Limits();
  limits.embedding.reset();
  limits.no_embedding = "it has a Dense module.";
  const auto add = ValidateRequest(GoodRequest(), limits, 1);
  EXPECT_EQ(add.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(add.status().message(),
            "embeddings are not supported: it has a Dense module.");
}

TEST(EmbeddingValidatorTest, AModelWithoutAHeadMakesThemAlone) {
  RequestLimits limits = Limits();
  limits.no_generation = "it has no output head.";
  EXPECT_TRUE(ValidateRequest(GoodRequest(), limits, 1).ok());
  v1::WorkerGenerateRequest request = GoodRequest();
  request.clear_embedding();
  const auto add = ValidateRequest(request, limits, 1);
  EXPECT_EQ(add.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(add.status().message(),
            "generation is not supported: it has no output head.");
}

}  // namespace
}  // namespace lockstep
