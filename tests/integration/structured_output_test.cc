// What a model says under a grammar: always of the grammar, and always the
// same, on every number of ranks and however its sequence is scheduled.
//
// LOCKSTEP_SCHEMA_SEED repeats a failure; each test prints its seed.

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/integration/grammar_group.h"
#include "tests/testing/grammar/json_schema_check.h"
#include "tests/testing/grammar/random_schema.h"
#include "tests/testing/grammar/tiny_token_bytes.h"
#include "tests/testing/tiny_model.h"
#include "worker/core/sequence.h"
#include "worker/grammar/grammar_vocabulary.h"
#include "worker/weights/model_files.h"

namespace lockstep {
namespace {

using ::lockstep::testing::GrammarGroup;
using ::lockstep::testing::TinyText;
using ::lockstep::testing::WhyNotOfSchema;
using Json = nlohmann::json;

constexpr int kMaxTokens = 300;
constexpr SchedulerOptions kScheduler = {.num_pages = 256,
                                         .page_size = 16,
                                         .max_step_tokens = 64,
                                         .max_sequences = 16,
                                         .max_logits_rows = 16,
                                         .max_context = 400};

uint32_t Seed() {
  const char* given = std::getenv("LOCKSTEP_SCHEMA_SEED");
  return given != nullptr ? std::strtoul(given, nullptr, 10)
                          : std::random_device()();
}

v1::Grammar OfSchema(const Json& schema) {
  v1::Grammar grammar;
  grammar.set_json_schema(schema.dump());
  return grammar;
}

v1::AddRequest Request(uint64_t grammar, uint64_t seed, uint32_t n = 1) {
  v1::AddRequest request;
  for (uint32_t id : {40, 41, 42, 43, 44}) request.add_prompt_token_ids(id);
  request.set_grammar(grammar);
  v1::ResolvedSampling& sampling = *request.mutable_sampling();
  sampling.set_n(n);
  sampling.set_seed(seed);
  sampling.set_temperature(1);
  sampling.set_top_p(1);
  sampling.set_repetition_penalty(1);
  sampling.set_max_tokens(kMaxTokens);
  sampling.add_stop_token_ids(testing::kTinyEos);
  return request;
}

class StructuredOutput : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string folder = ::testing::TempDir() + "structured";
    testing::WriteHuggingFaceFolder(testing::TinyModel(), folder);
    model_ = new ModelFiles(OpenModel(folder).value());
    vocabulary_ = GrammarVocabulary::Create(testing::MakeTinyTokenBytes(), 512,
                                            {testing::kTinyEos})
                      .value()
                      .release();
  }

  // Of the schema if it has ended, else on the way to it.
  static void ExpectOfSchema(const Json& schema,
                             const OutputRecorder::Record& output) {
    const std::string text = TinyText(output.tokens);
    SCOPED_TRACE(absl::StrCat(schema.dump(), " made ", text));
    if (output.reason == v1::STOP) {
      const Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
      ASSERT_FALSE(value.is_discarded());
      EXPECT_EQ(WhyNotOfSchema(schema, value), "");
      return;
    }
    EXPECT_EQ(output.reason, v1::LENGTH);
    GrammarMatcher matcher = *vocabulary_->Compile(OfSchema(schema));
    EXPECT_EQ(*matcher.Consume(output.tokens), output.tokens.size());
  }

  static std::vector<uint32_t> Alone(const v1::Grammar& grammar,
                                     v1::AddRequest request,
                                     uint32_t choice = 0) {
    GrammarGroup group(*model_, 1, kScheduler);
    request.set_grammar(group.Prepare(grammar));
    const uint64_t number = group.Add(request);
    EXPECT_TRUE(group.RunUntilIdle().ok());
    return group.outputs().of({number, choice}).tokens;
  }

  static const ModelFiles* model_;
  static GrammarVocabulary* vocabulary_;
};

const ModelFiles* StructuredOutput::model_ = nullptr;
GrammarVocabulary* StructuredOutput::vocabulary_ = nullptr;

TEST_F(StructuredOutput, SatisfiesItsSchemaOnEveryNumberOfRanks) {
  constexpr int kSchemas = 30;
  const uint32_t seed = Seed();
  SCOPED_TRACE(absl::StrCat("LOCKSTEP_SCHEMA_SEED=", seed));
  std::mt19937 random(seed);
  std::vector<Json> schemas;
  for (int i = 0; i < kSchemas; ++i) {
    schemas.push_back(testing::RandomSchema(random, 3));
  }
  std::vector<std::vector<uint32_t>> of_one_rank;
  int ended = 0;
  for (const int size : {1, 2}) {
    GrammarGroup group(*model_, size, kScheduler,
                       /*has_mask_thread=*/size == 2);
    std::vector<uint64_t> requests;
    for (int i = 0; i < kSchemas; ++i) {
      v1::AddRequest request =
          Request(group.Prepare(OfSchema(schemas[i])), seed + i);
      if (i % 3 == 0) request.mutable_sampling()->set_temperature(0);
      if (i % 3 == 1) request.mutable_sampling()->set_top_p(0.8f);
      requests.push_back(group.Add(request));
    }
    const absl::Status ran = group.RunUntilIdle();
    ASSERT_TRUE(ran.ok()) << ran;
    for (int i = 0; i < kSchemas; ++i) {
      const auto& output = group.outputs().of({requests[i], 0});
      ExpectOfSchema(schemas[i], output);
      ended += output.reason == v1::STOP;
      if (size == 1) {
        of_one_rank.push_back(output.tokens);
      } else {
        EXPECT_EQ(output.tokens, of_one_rank[i]) << schemas[i].dump();
      }
    }
  }
  // Only a greedy one can go in circles.
  EXPECT_GE(ended, 2 * kSchemas * 6 / 10);
}

const Json kPerson = {
    {"type", "object"},
    {"properties",
     {{"age", {{"type", "integer"}, {"minimum", 0}, {"maximum", 120}}},
      {"name", {{"type", "string"}, {"minLength", 20}, {"maxLength", 40}}},
      {"tags",
       {{"type", "array"},
        {"items", {{"enum", {"red", "green", "blue"}}}},
        {"minItems", 3},
        {"maxItems", 6}}}}},
    {"required", {"age", "name", "tags"}},
    {"additionalProperties", false}};

TEST_F(StructuredOutput, PreemptionAndCachedPrefixesChangeNothing) {
  const v1::Grammar grammar = OfSchema(kPerson);
  SchedulerOptions tight = kScheduler;
  tight.num_pages = 16;
  tight.max_context = 200;
  GrammarGroup group(*model_, 2, tight);
  const uint64_t number = group.Prepare(grammar);
  std::vector<uint64_t> requests;
  for (int i = 0; i < 6; ++i) {
    v1::AddRequest request = Request(number, i);
    request.mutable_sampling()->set_max_tokens(150);
    requests.push_back(group.Add(request));
  }
  ASSERT_TRUE(group.RunUntilIdle().ok());
  EXPECT_GT(group.stats().preemptions, 0);
  for (int i = 0; i < 6; ++i) {
    const auto& output = group.outputs().of({requests[i], 0});
    ExpectOfSchema(kPerson, output);
    EXPECT_EQ(output.tokens, Alone(grammar, Request(0, i)));
  }
  // The prompt and what followed it are cached now.
  const uint64_t again = group.Add(Request(number, 0));
  ASSERT_TRUE(group.RunUntilIdle().ok());
  EXPECT_EQ(group.outputs().of({again, 0}).tokens,
            group.outputs().of({requests[0], 0}).tokens);
}

TEST_F(StructuredOutput, EachChoiceGoesItsOwnWay) {
  GrammarGroup group(*model_, 2, kScheduler);
  const uint64_t request =
      group.Add(Request(group.Prepare(OfSchema(kPerson)), 7, /*n=*/4));
  ASSERT_TRUE(group.RunUntilIdle().ok());
  for (uint32_t choice = 0; choice < 4; ++choice) {
    const auto& output = group.outputs().of({request, choice});
    ExpectOfSchema(kPerson, output);
    EXPECT_EQ(output.reason, v1::STOP);
    if (choice == 0) continue;
    EXPECT_NE(output.tokens, group.outputs().of({request, 0}).tokens);
  }
}

TEST_F(StructuredOutput, AnotherGroupGoesOnInTheMiddleOfTheJson) {
  const v1::Grammar grammar = OfSchema(kPerson);
  const std::vector<uint32_t> whole = Alone(grammar, Request(0, 3));
  ASSERT_GT(whole.size(), 40);
  for (const size_t cut : {1, 7, 20, 39}) {
    GrammarGroup other(*model_, 2, kScheduler);
    v1::AddRequest request = Request(other.Prepare(grammar), 3);
    request.mutable_resume_token_ids()->Assign(whole.begin(),
                                               whole.begin() + cut);
    const uint64_t number = other.Add(request);
    ASSERT_TRUE(other.RunUntilIdle().ok());
    std::vector<uint32_t> joined(whole.begin(), whole.begin() + cut);
    const auto& rest = other.outputs().of({number, 0}).tokens;
    joined.insert(joined.end(), rest.begin(), rest.end());
    EXPECT_EQ(joined, whole) << "cut after " << cut;
  }
}

TEST_F(StructuredOutput, MaxTokensCutItShort) {
  GrammarGroup group(*model_, 1, kScheduler);
  v1::AddRequest request = Request(group.Prepare(OfSchema(kPerson)), 1);
  request.mutable_sampling()->set_max_tokens(9);
  const uint64_t number = group.Add(request);
  ASSERT_TRUE(group.RunUntilIdle().ok());
  const auto& output = group.outputs().of({number, 0});
  EXPECT_EQ(output.reason, v1::LENGTH);
  EXPECT_EQ(output.tokens.size(), 9);
  ExpectOfSchema(kPerson, output);
}

TEST_F(StructuredOutput, MinTokensGiveWayToItsEnd) {
  v1::Grammar yes;
  yes.set_regex("yes");
  GrammarGroup group(*model_, 1, kScheduler);
  v1::AddRequest request = Request(group.Prepare(yes), 1);
  request.mutable_sampling()->set_min_tokens(50);
  const uint64_t number = group.Add(request);
  ASSERT_TRUE(group.RunUntilIdle().ok());
  EXPECT_EQ(TinyText(group.outputs().of({number, 0}).tokens), "yes");
  EXPECT_EQ(group.outputs().of({number, 0}).reason, v1::STOP);
}

TEST_F(StructuredOutput, LogprobsAreOfWhatIsAllowed) {
  v1::Grammar one_of_two;
  one_of_two.set_regex("[ab]");
  GrammarGroup group(*model_, 1, kScheduler);
  v1::AddRequest request = Request(group.Prepare(one_of_two), 1);
  request.mutable_sampling()->set_logprobs_plus_one(6);
  const uint64_t number = group.Add(request);
  ASSERT_TRUE(group.RunUntilIdle().ok());
  const auto& output = group.outputs().of({number, 0});
  ASSERT_FALSE(output.logprobs.empty());
  const v1::PositionLogprobs& first = output.logprobs[0];
  ASSERT_EQ(first.top_size(), 2);
  double sum = 0;
  for (const auto& top : first.top()) sum += std::exp(top.logprob());
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST_F(StructuredOutput, ARequestOutlivesTheReleaseOfItsGrammar) {
  const v1::Grammar grammar = OfSchema(kPerson);
  GrammarGroup group(*model_, 2, kScheduler);
  const uint64_t prepared = group.Prepare(grammar);
  const uint64_t number = group.Add(Request(prepared, 5));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(group.Step().ok());
  group.Release(prepared);
  ASSERT_TRUE(group.RunUntilIdle().ok());
  EXPECT_EQ(group.outputs().of({number, 0}).tokens,
            Alone(grammar, Request(0, 5)));
}

// The states of such a regex are as many as the texts it has seen.
TEST_F(StructuredOutput, AGrammarThatIsTooComplexEndsItsRequestAlone) {
  v1::Grammar costly;
  costly.set_regex("(?s:.*)a(?s:.{200})b(?s:.*)c(?s:.{200})d");
  GrammarGroup group(*model_, 2, kScheduler);
  const uint64_t bad = group.Add(Request(group.Prepare(costly), 1));
  const uint64_t good = group.Add(Request(group.Prepare(OfSchema(kPerson)), 5));
  const absl::Status ran = group.RunUntilIdle();
  ASSERT_TRUE(ran.ok()) << ran;
  EXPECT_THAT(group.outputs().of({bad, 0}).reason,
              ::testing::AnyOf(v1::GRAMMAR_TOO_COMPLEX, v1::LENGTH));
  ExpectOfSchema(kPerson, group.outputs().of({good, 0}));
}

}  // namespace
}  // namespace lockstep
