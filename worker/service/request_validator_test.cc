#include "worker/service/request_validator.h"

#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr uint64_t kDrawnSeed = 77;

RequestLimits Limits() {
  return {.vocabulary_size = 50, .max_context = 20, .eos_token_ids = {49, 2}};
}

v1::WorkerGenerateRequest GoodRequest() {
  v1::WorkerGenerateRequest request;
  for (uint32_t id : {5, 6, 7}) request.add_prompt_token_ids(id);
  return request;
}

struct Row {
  std::string name;
  std::function<void(v1::WorkerGenerateRequest&)> edit;
  std::string sentence;  // empty: accepted
};

// One entry in the table below: edits the request's sampling parameters.
Row Sampling(std::string name, std::function<void(v1::SamplingParams&)> edit,
             std::string sentence) {
  return {std::move(name),
          [edit](v1::WorkerGenerateRequest& request) {
            edit(*request.mutable_sampling());
          },
          std::move(sentence)};
}

void FillPrompt(v1::WorkerGenerateRequest& request, int size) {
  request.clear_prompt_token_ids();
  for (int i = 0; i < size; ++i) request.add_prompt_token_ids(1);
}

std::vector<Row> RequestRows() {
  using R = v1::WorkerGenerateRequest;
  return {
      {"Good", [](R&) {}, ""},
      {"EmptyRequestId", [](R& r) { r.set_request_id(""); },
       "request_id has 0 characters, it must have 1 to 128."},
      {"RequestIdOf128", [](R& r) { r.set_request_id(std::string(128, 'a')); },
       ""},
      {"RequestIdOf129", [](R& r) { r.set_request_id(std::string(129, 'a')); },
       "request_id has 129 characters, it must have 1 to 128."},
      {"RequestIdCharacters", [](R& r) { r.set_request_id("aZ09._-"); }, ""},
      {"RequestIdSpace", [](R& r) { r.set_request_id("ab c"); },
       "request_id has the byte 0x20 at offset 2, only [A-Za-z0-9._-] are "
       "allowed."},
      {"EmptyPrompt", [](R& r) { r.clear_prompt_token_ids(); },
       "prompt_token_ids is empty, it must have 1 to 19 ids."},
      {"LongestPrompt", [](R& r) { FillPrompt(r, 19); }, ""},
      {"PromptOfContext", [](R& r) { FillPrompt(r, 20); },
       "prompt_token_ids has 20 ids, it must have 1 to 19: the context is 20 "
       "tokens, prompt and output."},
      {"PromptBeyondContext", [](R& r) { FillPrompt(r, 21); },
       "prompt_token_ids has 21 ids"},
      {"LargestPromptId", [](R& r) { r.set_prompt_token_ids(2, 49); }, ""},
      {"PromptIdOutside", [](R& r) { r.set_prompt_token_ids(2, 50); },
       "prompt_token_ids[2] is 50, it must be below the vocabulary size 50."},
      {"PromptIdHuge", [](R& r) { r.set_prompt_token_ids(0, 0xffffffff); },
       "prompt_token_ids[0] is 4294967295, it must be below"},
      {"Priority", [](R& r) { r.set_priority(-100); }, ""},
      {"PriorityLow", [](R& r) { r.set_priority(-101); },
       "priority is -101, it must be from -100 to 100."},
      {"PriorityHigh", [](R& r) { r.set_priority(101); },
       "priority is 101, it must be from -100 to 100."},
      {"UnknownField",
       [](R& r) {
         r.GetReflection()->MutableUnknownFields(&r)->AddVarint(19, 1);
       },
       "field number 19 of WorkerGenerateRequest is not known"},
      {"UnknownSamplingField",
       [](R& r) {
         v1::SamplingParams& sampling = *r.mutable_sampling();
         sampling.GetReflection()->MutableUnknownFields(&sampling)->AddVarint(
             17, 1);
       },
       "field number 17 of sampling is not known"},
  };
}

std::vector<Row> SamplingRows() {
  using S = v1::SamplingParams;
  return {
      Sampling(
          "Greedy", [](S& s) { s.set_temperature(0); }, ""),
      Sampling(
          "HighestTemperature", [](S& s) { s.set_temperature(100); }, ""),
      Sampling(
          "NegativeTemperature", [](S& s) { s.set_temperature(-1); },
          "sampling.temperature is -1, it must be from 0 to 100."),
      Sampling(
          "HighTemperature", [](S& s) { s.set_temperature(100.5f); },
          "sampling.temperature is 100.5, it must be from 0 to 100."),
      Sampling(
          "NanTemperature", [](S& s) { s.set_temperature(kNan); },
          "sampling.temperature is nan, it must be from 0 to 100."),
      Sampling(
          "InfiniteTemperature", [](S& s) { s.set_temperature(kInfinity); },
          "sampling.temperature is inf, it must be from 0 to 100."),
      Sampling(
          "AnyTopK", [](S& s) { s.set_top_k(0xffffffff); }, ""),
      Sampling(
          "ZeroTopP", [](S& s) { s.set_top_p(0); },
          "sampling.top_p is 0, it must be above 0 and at most 1."),
      Sampling(
          "HighTopP", [](S& s) { s.set_top_p(1.5f); },
          "sampling.top_p is 1.5, it must be above 0 and at most 1."),
      Sampling(
          "NanTopP", [](S& s) { s.set_top_p(kNan); }, "sampling.top_p is nan"),
      Sampling(
          "ZeroMinP", [](S& s) { s.set_min_p(0); }, ""),
      Sampling(
          "NegativeMinP", [](S& s) { s.set_min_p(-0.5f); },
          "sampling.min_p is -0.5, it must be from 0 to 1."),
      Sampling(
          "NanMinP", [](S& s) { s.set_min_p(kNan); }, "sampling.min_p is nan"),
      Sampling(
          "ZeroRepetition", [](S& s) { s.set_repetition_penalty(0); },
          "sampling.repetition_penalty is 0, it must be above 0 and at most "
          "100."),
      Sampling(
          "InfiniteRepetition",
          [](S& s) { s.set_repetition_penalty(kInfinity); },
          "sampling.repetition_penalty is inf"),
      Sampling(
          "LowPresence", [](S& s) { s.set_presence_penalty(-2.5f); },
          "sampling.presence_penalty is -2.5, it must be from -2 to 2."),
      Sampling(
          "NanPresence", [](S& s) { s.set_presence_penalty(kNan); },
          "sampling.presence_penalty is nan"),
      Sampling(
          "HighFrequency", [](S& s) { s.set_frequency_penalty(2.5f); },
          "sampling.frequency_penalty is 2.5, it must be from -2 to 2."),
      Sampling(
          "InfiniteFrequency",
          [](S& s) { s.set_frequency_penalty(-kInfinity); },
          "sampling.frequency_penalty is -inf"),
      Sampling(
          "ZeroMaxTokens", [](S& s) { s.set_max_tokens(0); },
          "sampling.max_tokens is 0, it must be at least 1."),
      Sampling(
          "MaxTokensOfTheRest", [](S& s) { s.set_max_tokens(17); }, ""),
      Sampling(
          "MaxTokensBeyondTheRest", [](S& s) { s.set_max_tokens(18); },
          "sampling.max_tokens is 18 and the prompt has 3 tokens, together "
          "they must not exceed the context of 20 tokens."),
      Sampling(
          "HugeMaxTokens", [](S& s) { s.set_max_tokens(0xffffffff); },
          "sampling.max_tokens is 4294967295 and"),
      Sampling(
          "MinTokensOfTheRest", [](S& s) { s.set_min_tokens(17); }, ""),
      Sampling(
          "MinTokensBeyondTheRest", [](S& s) { s.set_min_tokens(18); },
          "sampling.min_tokens is 18, it must be at most max_tokens, 17."),
      Sampling(
          "MinTokensBeyondMaxTokens",
          [](S& s) {
            s.set_max_tokens(4);
            s.set_min_tokens(5);
          },
          "sampling.min_tokens is 5, it must be at most max_tokens, 4."),
      Sampling(
          "StopId", [](S& s) { s.add_stop_token_ids(49); }, ""),
      Sampling(
          "StopIdOutside",
          [](S& s) {
            s.add_stop_token_ids(1);
            s.add_stop_token_ids(50);
          },
          "sampling.stop_token_ids[1] is 50, it must be below the vocabulary "
          "size 50."),
      Sampling(
          "ManyStopIds",
          [](S& s) {
            for (int i = 0; i < 65; ++i) s.add_stop_token_ids(1);
          },
          "sampling.stop_token_ids has 65 entries, at most 64 are allowed."),
      Sampling(
          "BiasOutside", [](S& s) { (*s.mutable_logit_bias())[50] = 1; },
          "sampling.logit_bias key is 50, it must be below the vocabulary size "
          "50."),
      Sampling(
          "HighBias", [](S& s) { (*s.mutable_logit_bias())[4] = 101; },
          "sampling.logit_bias[4] is 101, it must be from -100 to 100."),
      Sampling(
          "NanBias", [](S& s) { (*s.mutable_logit_bias())[4] = kNan; },
          "sampling.logit_bias[4] is nan"),
      Sampling(
          "ManyBiases",
          [](S& s) {
            for (int i = 0; i < 1025; ++i) (*s.mutable_logit_bias())[i] = 1;
          },
          "sampling.logit_bias has 1025 entries, at most 1024 are allowed."),
      Sampling(
          "MostAllowedIds",
          [](S& s) {
            for (int i = 0; i < 4096; ++i) s.add_allowed_token_ids(i % 50);
          },
          ""),
      Sampling(
          "ManyAllowedIds",
          [](S& s) {
            for (int i = 0; i < 4097; ++i) s.add_allowed_token_ids(1);
          },
          "sampling.allowed_token_ids has 4097 entries, at most 4096 are "
          "allowed."),
      Sampling(
          "AllowedIdOutside",
          [](S& s) {
            s.add_allowed_token_ids(49);
            s.add_allowed_token_ids(50);
          },
          "sampling.allowed_token_ids[1] is 50, it must be below the "
          "vocabulary size 50."),
      Sampling(
          "ManyBadWords",
          [](S& s) {
            for (int i = 0; i < 257; ++i) s.add_bad_words()->add_ids(1);
          },
          "sampling.bad_words has 257 entries, at most 256 are allowed."),
      Sampling(
          "EmptyBadWord",
          [](S& s) {
            s.add_bad_words()->add_ids(1);
            s.add_bad_words();
          },
          "sampling.bad_words[1].ids is empty, it must have at least one id."),
      Sampling(
          "LongBadWord",
          [](S& s) { s.add_bad_words()->mutable_ids()->Resize(257, 1); },
          "sampling.bad_words[0].ids has 257 entries, at most 256 are "
          "allowed."),
      Sampling(
          "BadWordOutside",
          [](S& s) {
            s.add_bad_words()->add_ids(1);
            s.mutable_bad_words(0)->add_ids(50);
          },
          "sampling.bad_words[0].ids[1] is 50, it must be below the "
          "vocabulary size 50."),
      Sampling(
          "MostChoices", [](S& s) { s.set_n(128); }, ""),
      Sampling(
          "NoChoice", [](S& s) { s.set_n(0); },
          "sampling.n is 0, it must be from 1 to 128."),
      Sampling(
          "ManyChoices", [](S& s) { s.set_n(129); },
          "sampling.n is 129, it must be from 1 to 128."),
      Sampling(
          "Logprobs", [](S& s) { s.set_logprobs(20); }, ""),
      Sampling(
          "ManyLogprobs", [](S& s) { s.set_logprobs(21); },
          "sampling.logprobs is 21, it must be at most 20."),
      Sampling(
          "ManyPromptLogprobs", [](S& s) { s.set_prompt_logprobs(21); },
          "sampling.prompt_logprobs is 21, it must be at most 20."),
  };
}

void Check(const Row& row) {
  v1::WorkerGenerateRequest request = GoodRequest();
  row.edit(request);
  const auto add = ValidateRequest(request, Limits(), kDrawnSeed);
  if (row.sentence.empty()) {
    EXPECT_TRUE(add.ok()) << row.name << ": " << add.status().message();
    return;
  }
  EXPECT_EQ(add.status().code(), absl::StatusCode::kInvalidArgument)
      << row.name;
  EXPECT_THAT(std::string(add.status().message()), HasSubstr(row.sentence))
      << row.name;
}

TEST(RequestValidatorTest, NamesFieldValueAndLimit) {
  for (const Row& row : RequestRows()) Check(row);
}

TEST(RequestValidatorTest, NamesSamplingFieldValueAndLimit) {
  for (const Row& row : SamplingRows()) Check(row);
}

TEST(RequestValidatorTest, FillsInDefaults) {
  const auto add = ValidateRequest(GoodRequest(), Limits(), kDrawnSeed);
  ASSERT_TRUE(add.ok());
  EXPECT_EQ(add->request(), 0);
  EXPECT_THAT(add->prompt_token_ids(), ElementsAre(5, 6, 7));
  EXPECT_EQ(add->priority(), 0);
  EXPECT_FALSE(add->bypass_prefix_cache());
  const v1::ResolvedSampling& sampling = add->sampling();
  EXPECT_EQ(sampling.temperature(), 1);
  EXPECT_EQ(sampling.top_k(), 0);
  EXPECT_EQ(sampling.top_p(), 1);
  EXPECT_EQ(sampling.min_p(), 0);
  EXPECT_EQ(sampling.repetition_penalty(), 1);
  EXPECT_EQ(sampling.presence_penalty(), 0);
  EXPECT_EQ(sampling.frequency_penalty(), 0);
  EXPECT_EQ(sampling.seed(), kDrawnSeed);
  EXPECT_EQ(sampling.max_tokens(), 17);
  EXPECT_EQ(sampling.min_tokens(), 0);
  EXPECT_THAT(sampling.stop_token_ids(), ElementsAre(2, 49));
  EXPECT_EQ(sampling.n(), 1);
  EXPECT_EQ(sampling.logprobs_plus_one(), 0);
  EXPECT_EQ(sampling.prompt_logprobs_plus_one(), 0);
}

TEST(RequestValidatorTest, TakesWhatIsSet) {
  v1::WorkerGenerateRequest request = GoodRequest();
  request.set_priority(9);
  request.set_bypass_prefix_cache(true);
  request.add_resume_token_ids(8);
  v1::SamplingParams& params = *request.mutable_sampling();
  params.set_temperature(0);
  params.set_seed(0);
  params.set_max_tokens(4);
  params.set_min_tokens(3);
  params.set_ignore_eos(true);
  params.set_logprobs(0);
  params.set_prompt_logprobs(2);
  params.add_stop_token_ids(9);
  params.add_stop_token_ids(4);
  params.add_stop_token_ids(9);
  (*params.mutable_logit_bias())[7] = 2;
  (*params.mutable_logit_bias())[3] = -1;
  for (const uint32_t id : {8, 6, 8}) params.add_allowed_token_ids(id);
  params.add_bad_words()->add_ids(5);
  for (const uint32_t id : {2, 1}) params.mutable_bad_words(0)->add_ids(id);
  params.add_bad_words()->add_ids(9);
  const auto add = ValidateRequest(request, Limits(), kDrawnSeed);
  ASSERT_TRUE(add.ok()) << add.status().message();
  EXPECT_EQ(add->priority(), 9);
  EXPECT_TRUE(add->bypass_prefix_cache());
  EXPECT_THAT(add->resume_token_ids(), ElementsAre(8));
  const v1::ResolvedSampling& sampling = add->sampling();
  EXPECT_EQ(sampling.temperature(), 0);
  EXPECT_EQ(sampling.seed(), 0);
  EXPECT_EQ(sampling.max_tokens(), 4);
  EXPECT_EQ(sampling.min_tokens(), 3);
  EXPECT_EQ(sampling.logprobs_plus_one(), 1);
  EXPECT_EQ(sampling.prompt_logprobs_plus_one(), 3);
  EXPECT_THAT(sampling.stop_token_ids(), ElementsAre(4, 9));
  EXPECT_THAT(sampling.bias_token_ids(), ElementsAre(3, 7));
  EXPECT_THAT(sampling.bias_values(), ElementsAre(-1, 2));
  EXPECT_THAT(sampling.allowed_token_ids(), ElementsAre(6, 8));
  EXPECT_THAT(sampling.bad_word_token_ids(), ElementsAre(5, 2, 1, 9));
  EXPECT_THAT(sampling.bad_word_sizes(), ElementsAre(3, 1));
}

TEST(RequestValidatorTest, TheModelsDefaultsAreOfWhatIsNotSet) {
  RequestLimits limits = Limits();
  limits.sampling_defaults.set_temperature(0.5);
  limits.sampling_defaults.set_top_k(20);
  limits.sampling_defaults.set_max_tokens(1000);
  v1::WorkerGenerateRequest request = GoodRequest();
  request.mutable_sampling()->set_temperature(0);
  auto add = ValidateRequest(request, limits, kDrawnSeed);
  ASSERT_TRUE(add.ok()) << add.status();
  EXPECT_EQ(add->sampling().temperature(), 0);
  EXPECT_EQ(add->sampling().top_k(), 20);
  EXPECT_EQ(add->sampling().top_p(), 1);
  EXPECT_EQ(add->sampling().max_tokens(), 17);  // the rest of the context
  limits.sampling_defaults.set_max_tokens(5);
  request.mutable_sampling()->set_min_tokens(6);
  add = ValidateRequest(request, limits, kDrawnSeed);
  ASSERT_TRUE(add.ok()) << add.status();
  EXPECT_EQ(add->sampling().max_tokens(), 6);
  request.mutable_sampling()->set_max_tokens(9);
  EXPECT_EQ(
      ValidateRequest(request, limits, kDrawnSeed)->sampling().max_tokens(), 9);
}

TEST(RequestValidatorTest, LeavesOutEndOfTextIdsWithoutLogits) {
  RequestLimits limits = Limits();
  limits.eos_token_ids = {50, 2};
  const auto add = ValidateRequest(GoodRequest(), limits, kDrawnSeed);
  ASSERT_TRUE(add.ok());
  EXPECT_THAT(add->sampling().stop_token_ids(), ElementsAre(2));
}

}  // namespace
}  // namespace lockstep
