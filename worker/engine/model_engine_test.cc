#include "worker/engine/model_engine.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "proto/group.pb.h"
#include "tests/testing/engine/hand_planned_engine.h"
#include "tests/testing/engine_group.h"
#include "tests/testing/local_ranks.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"
#include "worker/collectives/collective.h"
#include "worker/core/sequence.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/model_spec/shard.h"
#include "worker/weights/model_files.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using testing::EngineGroup;
using testing::HandPlannedEngine;
using testing::TinyModel;
using Rows = std::vector<std::vector<float>>;

constexpr int kVocab = 501;  // padded on every number of ranks but 3

TinyModel Llama() {
  TinyModel model;
  model.vocab_size = kVocab;
  return model;
}

TinyModel Qwen3() {
  TinyModel model = Llama();
  model.architecture = "qwen3";
  model.tied_embeddings = true;
  return model;
}

// Nine heads: no power of two divides them.
TinyModel NineHeads() {
  TinyModel model = Llama();
  model.num_heads = 9;
  model.num_kv_heads = 3;
  model.hidden_size = 72;
  return model;
}

ModelFiles Write(const TinyModel& model) {
  static int counter = 0;
  const std::string folder =
      absl::StrCat(::testing::TempDir(), "engine-model-", counter++);
  testing::WriteHuggingFaceFolder(model, folder);
  auto files = OpenModel(folder);
  EXPECT_TRUE(files.ok()) << files.status();
  return *std::move(files);
}

EngineGroup::Options Options() {
  EngineGroup::Options options;
  options.engine = {.num_pages = 64,
                    .page_size = 16,
                    .max_step_tokens = 128,
                    .max_sequences = 8,
                    .max_logits_rows = 128};
  return options;
}

std::vector<uint32_t> Prompt(int seed, int num_tokens) {
  std::mt19937 random(seed);
  std::vector<uint32_t> tokens(num_tokens);
  for (uint32_t& token : tokens) token = random() % kVocab;
  return tokens;
}

// Logits of all positions of a prompt of 90 tokens, and of three tokens that
// follow.
Rows LogitsAlone(const ModelFiles& model, int size,
                 const EngineGroup::Options& options = Options()) {
  HandPlannedEngine engine(model, size, options);
  const int sequence = engine.Add(Prompt(1, 90));
  engine.Step({{sequence, 90}});
  for (int i = 0; i < 3; ++i) engine.Step({{sequence, 1}});
  return engine.logits(sequence);
}

double LargestDifference(const Rows& a, const Rows& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a[i].size(); ++j) {
      largest = std::max(largest, std::abs(double{a[i][j]} - b[i][j]));
    }
  }
  return largest;
}

TinyModel Of(const std::string& architecture) {
  TinyModel model = Llama();
  model.architecture = architecture;
  if (architecture == "mistral" || architecture == "phi3") model.window = 30;
  if (architecture == "smollm3") model.num_layers = 4;
  return model;
}

// The order of a head's dimensions may differ, and with it that of sums.
TEST(ModelEngine, AGgufFileIsTheSameModelAsAFolder) {
  for (const char* architecture :
       {"llama", "mistral", "phi3", "qwen2", "qwen3", "smollm3"}) {
    SCOPED_TRACE(architecture);
    const TinyModel spec = Of(architecture);
    const std::string path = ::testing::TempDir() + architecture + ".gguf";
    testing::WriteGguf(spec, path);
    const auto gguf = OpenModel(path);
    ASSERT_TRUE(gguf.ok()) << gguf.status();
    EXPECT_LT(
        LargestDifference(LogitsAlone(Write(spec), 1), LogitsAlone(*gguf, 1)),
        1e-4);
  }
}

TEST(ModelEngine, LogitsHaveTheSameBitsOnEveryEvenNumberOfRanks) {
  for (const TinyModel& spec :
       {Llama(), Qwen3(), Of("phi3"), Of("qwen2"), Of("smollm3")}) {
    const ModelFiles model = Write(spec);
    const std::vector<int> sizes =
        IdenticalSizes(model.config, model.row_parallel_blocks, 1);
    EXPECT_THAT(sizes, ElementsAre(1, 2, 4, 8));
    const Rows expected = LogitsAlone(model, 1);
    ASSERT_EQ(expected.size(), 93);
    ASSERT_EQ(expected[0].size(), kVocab);
    for (const int size : sizes) {
      EXPECT_EQ(LogitsAlone(model, size), expected)
          << spec.architecture << " on " << size << " ranks";
    }
  }
}

// Sums of up to 128 terms in another order: each adds at most a rounding of
// 2^-24 of a value of about 10, over 2 layers.
TEST(ModelEngine, LogitsAreCloseWhereTheHeadsDoNotDivide) {
  constexpr double kTolerance = 1e-4;
  const ModelFiles eight = Write(Llama());
  EXPECT_LT(LargestDifference(LogitsAlone(eight, 3), LogitsAlone(eight, 1)),
            kTolerance);
  const ModelFiles nine = Write(NineHeads());
  const Rows expected = LogitsAlone(nine, 1);
  for (const int size : {2, 3, 4, 9}) {
    EXPECT_LT(LargestDifference(LogitsAlone(nine, size), expected), kTolerance)
        << size << " ranks";
  }
}

TEST(ModelEngine, ChunksOfThePromptChangeNoBit) {
  const ModelFiles model = Write(Qwen3());
  const Rows expected = LogitsAlone(model, 1);
  for (const int chunk : {1, 7, 16, 64, 89}) {
    HandPlannedEngine engine(model, /*size=*/2, Options());
    const int sequence = engine.Add(Prompt(1, 90));
    for (int done = 0; done < 90; done += chunk) {
      engine.Step({{sequence, std::min(chunk, 90 - done)}});
    }
    for (int i = 0; i < 3; ++i) engine.Step({{sequence, 1}});
    EXPECT_EQ(engine.logits(sequence), expected) << "chunks of " << chunk;
  }
}

TEST(ModelEngine, OtherSequencesOfTheBatchChangeNoBit) {
  const ModelFiles model = Write(Llama());
  HandPlannedEngine engine(model, /*size=*/2, Options());
  const int decoding = engine.Add(Prompt(2, 20));
  engine.Step({{decoding, 20}});
  const int watched = engine.Add(Prompt(1, 90));
  const int other = engine.Add(Prompt(3, 33));
  engine.Step({{decoding, 1}, {watched, 50}, {other, 5}});
  engine.Step({{other, 28}, {decoding, 1}, {watched, 40}});
  engine.Step({{watched, 1}, {other, 1}});
  engine.Step({{decoding, 1}, {watched, 1}, {other, 1}});
  engine.Step({{watched, 1}});
  EXPECT_EQ(engine.logits(watched), LogitsAlone(model, 1));
}

TEST(ModelEngine, PageSizeAndThreadsChangeNoBit) {
  const ModelFiles model = Write(Llama());
  const Rows expected = LogitsAlone(model, 1);
  for (const int page_size : {1, 4, 64, 256}) {
    EngineGroup::Options options = Options();
    options.engine.page_size = page_size;
    options.engine.num_pages = 1024 / page_size;
    EXPECT_EQ(LogitsAlone(model, 1, options), expected)
        << "pages of " << page_size;
  }
  for (const int threads : {2, 3}) {
    EngineGroup::Options options = Options();
    options.ranks.threads = threads;
    EXPECT_EQ(LogitsAlone(model, 1, options), expected)
        << threads << " threads";
  }
}

TEST(ModelEngine, LogitsThatNobodyWantsChangeNoBit) {
  const ModelFiles model = Write(Llama());
  HandPlannedEngine engine(model, /*size=*/1, Options());
  const int sequence = engine.Add(Prompt(1, 90));
  engine.Step({{sequence, 60}}, /*all_logits=*/false);
  engine.Step({{sequence, 30}}, /*all_logits=*/false);
  EXPECT_TRUE(engine.logits(sequence)[88].empty());
  EXPECT_EQ(engine.logits(sequence)[89], LogitsAlone(model, 1)[89]);
}

TEST(ModelEngine, CallsTwoCollectivesALayerAndTwoMore) {
  for (const int size : {1, 4}) {
    const ModelFiles model = Write(Llama());
    const int layers = model.config.num_layers;
    HandPlannedEngine engine(model, size, Options());
    const int sequence = engine.Add(Prompt(1, 40));
    const auto expect_calls = [&](int all_reduces, int all_gathers) {
      for (int rank = 0; rank < size; ++rank) {
        const Collective& collective =
            *engine.group().ranks().rank(rank).collective;
        EXPECT_EQ(collective.num_all_reduces(), all_reduces);
        EXPECT_EQ(collective.num_all_gathers(), all_gathers);
      }
    };
    // A chunk from which nothing is sampled has no logits to gather.
    engine.Step({{sequence, 20}}, /*all_logits=*/false);
    expect_calls(2 * layers + 1, 0);
    engine.Step({{sequence, 20}});
    expect_calls(2 * (2 * layers + 1), 1);
    engine.Step({{sequence, 1}});
    expect_calls(3 * (2 * layers + 1), 2);
  }
}

TEST(ModelEngine, ScoresPromptTokensWhereTheyAreWanted) {
  const ModelFiles model = Write(Llama());
  HandPlannedEngine engine(model, /*size=*/2, Options());
  const int sequence = engine.Add(Prompt(1, 9));
  const StepResult first = engine.Step({{sequence, 5}});
  const StepResult second = engine.Step({{sequence, 4}});
  ASSERT_EQ(first.spans[0].prompt_logprobs.size(), 5);
  ASSERT_EQ(second.spans[0].prompt_logprobs.size(), 3);
  for (int i = 0; i < 8; ++i) {
    const v1::PositionLogprobs& scored =
        i < 5 ? first.spans[0].prompt_logprobs[i]
              : second.spans[0].prompt_logprobs[i - 5];
    EXPECT_EQ(scored.token().token_id(), engine.tokens(sequence)[i + 1]);
    const std::vector<float>& logits = engine.logits(sequence)[i];
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit);
    EXPECT_NEAR(scored.token().logprob(),
                logits[engine.tokens(sequence)[i + 1]] - std::log(sum), 1e-5);
  }
  const std::vector<float>& last = engine.logits(sequence)[8];
  EXPECT_EQ(second.spans[0].token,
            std::max_element(last.begin(), last.end()) - last.begin());
}

TEST(ModelEngine, ARankThatIsAbortedFails) {
  const ModelFiles model = Write(Llama());
  auto group = EngineGroup::Create(model, /*size=*/2, Options());
  ASSERT_TRUE(group.ok()) << group.status();
  (*group)->ranks().rank(0).collective->Abort("rank 1 is gone");
  auto request = std::make_shared<v1::AddRequest>();
  request->add_prompt_token_ids(3);
  Sequence sequence({1, 0}, request);
  sequence.mutable_pages() = {0};
  StepPlan plan;
  plan.spans.push_back(
      {.sequence = &sequence, .begin = 0, .count = 1, .samples = true});
  StepResult result;
  const absl::Status status = (*group)->Execute(plan, &result);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "rank 1 is gone");
}

TEST(ModelEngine, RefusesACollectiveOfAnotherRank) {
  const ModelFiles model = Write(Llama());
  auto ranks = testing::LocalRanks::Create(2);
  const auto shard = MakeShard(model.config, model.row_parallel_blocks,
                               /*rank=*/1, /*size=*/2);
  const auto engine =
      ModelEngine::Create(model, *shard, Options().engine,
                          (*ranks)->rank(0).ops, (*ranks)->rank(0).collective);
  EXPECT_EQ(engine.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep
