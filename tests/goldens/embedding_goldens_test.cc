// Embeddings against what Hugging Face's implementation has after its last
// norm: pN.hidden of tiny/, whose last layer is pooled here in the plainest
// way.

#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <absl/types/span.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "proto/group.pb.h"
#include "tests/goldens/number_file.h"
#include "tests/testing/engine_group.h"
#include "tests/testing/output_recorder.h"
#include "tests/testing/safetensors_writer.h"
#include "tests/testing/write_file.h"
#include "worker/checkpoint/safetensors_folder.h"
#include "worker/core/step_result.h"
#include "worker/scheduler/scheduler.h"
#include "worker/weights/model_files.h"

namespace lockstep::goldens {
namespace {

// As of logits (golden_set.cc): these are sums over hidden states, with weights
// whose squares sum to about 2.
constexpr float kRounding = 1e-4f;
constexpr int kChunk =
    7;  // tokens of a step: no divisor of a prompt's 16 or 80

struct Golden {
  std::vector<uint32_t> ids;
  std::vector<float> hidden;  // [ids, hidden_size], after the last norm
  int hidden_size = 0;
  int max_context = 0;  // what OpenModel takes
};

Golden Read(const std::string& path) {
  const auto file = NumberFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  const auto ids = (*file)->Read<int32_t>("p1.ids");
  const auto hidden = (*file)->Read<float>("p1.hidden");
  EXPECT_TRUE(ids.ok() && hidden.ok()) << path;
  Golden golden;
  golden.ids.assign(ids->values.begin(), ids->values.end());
  golden.hidden_size = static_cast<int>(hidden->shape[2]);
  const size_t count = golden.ids.size() * golden.hidden_size;
  golden.hidden.assign(hidden->values.end() - count, hidden->values.end());
  const auto max_context = (*file)->Read<int32_t>("max_context");
  if (max_context.ok()) golden.max_context = max_context->values.front();
  return golden;
}

std::vector<float> Expected(const Golden& golden,
                            const v1::ResolvedEmbedding& embedding) {
  const int size = golden.hidden_size;
  const int positions = static_cast<int>(golden.ids.size());
  const bool is_mean = embedding.pooling() == v1::MEAN;
  std::vector<float> pooled;
  double squares = 0;
  for (uint32_t i = 0; i < embedding.dimensions(); ++i) {
    double sum = 0;
    for (int p = is_mean ? 0 : positions - 1; p < positions; ++p) {
      sum += golden.hidden[p * size + i];
    }
    pooled.push_back(static_cast<float>(is_mean ? sum / positions : sum));
    squares += double{pooled.back()} * pooled.back();
  }
  if (!embedding.normalize()) return pooled;
  for (float& value : pooled) value /= static_cast<float>(std::sqrt(squares));
  return pooled;
}

class Embedder {
 public:
  Embedder(const ModelFiles& model, int ranks)
      : scheduler_(Options(), &outputs_),
        engine_(testing::EngineGroup::Create(
            model, ranks,
            {.engine = {.num_pages = Options().num_pages,
                        .page_size = Options().page_size,
                        .max_step_tokens = kChunk,
                        .max_sequences = Options().max_sequences,
                        .max_logits_rows = Options().max_logits_rows},
             .ranks = {}})) {
    EXPECT_TRUE(engine_.ok()) << engine_.status();
  }

  std::vector<float> Embed(const std::vector<uint32_t>& ids,
                           const v1::ResolvedEmbedding& embedding) {
    v1::RankMessage message;
    v1::AddRequest& add = *message.mutable_add();
    add.set_request(++number_);
    add.mutable_prompt_token_ids()->Assign(ids.begin(), ids.end());
    add.mutable_sampling()->set_n(1);
    *add.mutable_embedding() = embedding;
    EXPECT_TRUE(scheduler_.Apply(message).ok());
    StepResult result;
    while (scheduler_.HasWork()) {
      const absl::Status executed =
          (*engine_)->Execute(scheduler_.Plan(), &result);
      EXPECT_TRUE(executed.ok()) << executed;
      scheduler_.Commit(result);
    }
    return outputs_.of({number_, 0}).embedding;
  }

 private:
  static SchedulerOptions Options() {
    return {.num_pages = 32,
            .page_size = 4,
            .max_step_tokens = kChunk,
            .max_sequences = 4,
            .max_logits_rows = 4,
            .max_context = 128};
  }

  OutputRecorder outputs_;
  Scheduler scheduler_;
  absl::StatusOr<std::unique_ptr<testing::EngineGroup>> engine_;
  uint64_t number_ = 0;
};

void ExpectNear(const std::vector<float>& expected,
                const std::vector<float>& found) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], kRounding) << "value " << i;
  }
}

std::vector<v1::ResolvedEmbedding> AllKinds(int hidden_size) {
  std::vector<v1::ResolvedEmbedding> kinds;
  for (const v1::Pooling pooling : {v1::LAST_TOKEN, v1::MEAN}) {
    for (const bool normalize : {false, true}) {
      for (const int dimensions : {hidden_size, hidden_size / 4}) {
        v1::ResolvedEmbedding& kind = kinds.emplace_back();
        kind.set_pooling(pooling);
        kind.set_normalize(normalize);
        kind.set_dimensions(dimensions);
      }
    }
  }
  return kinds;
}

TEST(EmbeddingGoldens, AgreeForEveryArchitecture) {
  int models = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("tests/goldens/tiny")) {
    for (const char* type : {"fp32", "bf16"}) {
      const std::string folder = entry.path().string();
      SCOPED_TRACE(absl::StrCat(folder, " ", type));
      const Golden golden =
          Read(absl::StrCat(folder, "/goldens.", type, ".safetensors"));
      const auto model =
          OpenModel(absl::StrCat(folder, "/", type), golden.max_context);
      ASSERT_TRUE(model.ok()) << model.status();
      Embedder embedder(*model, /*ranks=*/1);
      for (const auto& kind : AllKinds(golden.hidden_size)) {
        SCOPED_TRACE(kind.ShortDebugString());
        ExpectNear(Expected(golden, kind), embedder.Embed(golden.ids, kind));
      }
      ++models;
    }
  }
  EXPECT_EQ(models, 2 * 25);
}

// An fp32 model as transformers' class without a head saves it: no lm_head, and
// the names of all else without "model.".
std::string WithoutHead(const std::string& folder) {
  const std::string copy = absl::StrCat(::testing::TempDir(), "without_head");
  std::filesystem::remove_all(copy);
  std::filesystem::create_directories(copy);
  std::filesystem::copy_file(folder + "/config.json", copy + "/config.json");
  const auto source = SafetensorsFolder::Open(folder);
  EXPECT_TRUE(source.ok()) << source.status();
  testing::SafetensorsWriter writer;
  for (const std::string& name : (*source)->Names()) {
    if (name == "lm_head.weight") continue;
    const auto tensor = (*source)->Get(name);
    writer.AddTensor(absl::StripPrefix(name, "model."), "F32", tensor->shape,
                     {reinterpret_cast<const char*>(tensor->bytes.data()),
                      tensor->bytes.size()});
  }
  testing::WriteFile(copy + "/model.safetensors", writer.Finish());
  return copy;
}

TEST(EmbeddingGoldens, WithoutAHeadEveryBitIsTheSame) {
  for (const auto& entry :
       std::filesystem::directory_iterator("tests/goldens/tiny")) {
    const std::string folder = entry.path().string();
    SCOPED_TRACE(folder);
    const Golden golden = Read(folder + "/goldens.fp32.safetensors");
    const auto whole = OpenModel(folder + "/fp32", golden.max_context);
    const auto base =
        OpenModel(WithoutHead(folder + "/fp32"), golden.max_context);
    ASSERT_TRUE(whole.ok() && base.ok()) << base.status();
    EXPECT_EQ(base->config.has_head, whole->config.tied_embeddings);
    Embedder with_head(*whole, /*ranks=*/1), without(*base, /*ranks=*/1);
    for (const auto& kind : AllKinds(golden.hidden_size)) {
      EXPECT_EQ(without.Embed(golden.ids, kind),
                with_head.Embed(golden.ids, kind));
    }
  }
}

TEST(EmbeddingGoldens, RanksAndThePrefixCacheChangeNoBit) {
  const std::string folder = "tests/goldens/tiny/qwen3";
  const Golden golden = Read(folder + "/goldens.fp32.safetensors");
  const auto model = OpenModel(folder + "/fp32");
  ASSERT_TRUE(model.ok()) << model.status();
  Embedder alone(*model, /*ranks=*/1);
  for (const int ranks : {2, 4, 8}) {
    Embedder group(*model, ranks);
    for (const auto& kind : AllKinds(golden.hidden_size)) {
      SCOPED_TRACE(absl::StrCat(ranks, " ranks, ", kind.ShortDebugString()));
      // From the second kind on, the pages are cached.
      EXPECT_EQ(group.Embed(golden.ids, kind), alone.Embed(golden.ids, kind));
    }
  }
}

}  // namespace
}  // namespace lockstep::goldens
