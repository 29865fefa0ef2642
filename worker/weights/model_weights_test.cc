#include "worker/weights/model_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "kernels/threads/thread_pool.h"
#include "kernels/weights/arithmetic.h"
#include "kernels/weights/packed_format.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"
#include "worker/checkpoint/tensor_part.h"
#include "worker/weights/model_files.h"

namespace lockstep {
namespace {

using kernels::DType;
using kernels::PackedMatrix;
using ::lockstep::testing::TinyModel;
using ::lockstep::testing::WriteGguf;
using ::lockstep::testing::WriteHuggingFaceFolder;

using Matrix = std::vector<std::vector<float>>;  // rows

// All of a tensor, decoded.
Matrix Decode(const Tensor& tensor) {
  const TensorPart whole = WholeOf(tensor);
  Matrix rows;
  for (TensorPart part = {.rows = 1, .cols = whole.cols};
       part.row_begin < whole.rows; ++part.row_begin) {
    std::vector<float> row(whole.cols);
    DecodePart(tensor, part, row.data());
    rows.push_back(std::move(row));
  }
  return rows;
}

// All of a packed matrix, decoded.
Matrix Decode(const PackedMatrix& packed) {
  Matrix rows;
  for (const PackedMatrix::Segment& segment : packed.segments()) {
    for (int i = 0; i < segment.rows; ++i) {
      const uint8_t* const panel =
          segment.data + i / kernels::kPanelRows * segment.panel_bytes;
      std::vector<float> row(packed.cols());
      for (int k = 0; k < packed.cols(); ++k) {
        const int slice = k / packed.slice_cols();
        row[k] = kernels::PackedValue(
            segment.type, panel + slice * segment.slice_bytes,
            i % kernels::kPanelRows, k % packed.slice_cols());
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

// The parts of a model that a rank should hold, cut out of its full tensors.
class Expected {
 public:
  Expected(const ModelFiles& model, const Shard& shard, int layer)
      : model_(model), shard_(shard), layer_(layer) {}

  Matrix Qkv() const {
    return Concat(
        {Heads("self_attn.q_proj", shard_.head_begin, shard_.head_end),
         Heads("self_attn.k_proj", shard_.kv_head_begin, shard_.kv_head_end),
         Heads("self_attn.v_proj", shard_.kv_head_begin, shard_.kv_head_end)});
  }
  Matrix GateUp() const {
    const int begin = shard_.mlp.begin, end = shard_.mlp.end;
    return Concat({Rows(Layer("mlp.gate_proj"), begin, end),
                   Rows(Layer("mlp.up_proj"), begin, end)});
  }
  Matrix O() const {
    return Columns(Layer("self_attn.o_proj"),
                   shard_.head_begin * model_.config.head_dim,
                   shard_.head_end * model_.config.head_dim);
  }
  Matrix Down() const {
    return Columns(Layer("mlp.down_proj"), shard_.mlp.begin, shard_.mlp.end);
  }
  Matrix Vocabulary(const std::string& name) const {
    return Rows(Decode(*model_.tensors->Get(name)), shard_.vocab_begin,
                std::min(shard_.vocab_begin + shard_.vocab_rows,
                         model_.config.vocab_size));
  }
  std::vector<float> Vector(const std::string& name) const {
    return Layer(name)[0];
  }

 private:
  static Matrix Rows(const Matrix& full, int begin, int end) {
    return Matrix(full.begin() + begin, full.begin() + end);
  }
  static Matrix Columns(const Matrix& full, int begin, int end) {
    Matrix cut;
    for (const std::vector<float>& row : full) {
      cut.emplace_back(row.begin() + begin, row.begin() + end);
    }
    return cut;
  }
  static Matrix Concat(const std::vector<Matrix>& parts) {
    Matrix all;
    for (const Matrix& part : parts) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }
  Matrix Layer(const std::string& name) const {
    return Decode(*model_.tensors->Get(
        "model.layers." + std::to_string(layer_) + "." + name + ".weight"));
  }
  Matrix Heads(const std::string& name, int begin, int end) const {
    const int head_dim = model_.config.head_dim;
    return Rows(Layer(name), begin * head_dim, end * head_dim);
  }

  const ModelFiles& model_;
  const Shard& shard_;
  const int layer_;
};

void ExpectHoldsItsSlice(const ModelFiles& model, int rank, int size) {
  SCOPED_TRACE("rank " + std::to_string(rank) + " of " + std::to_string(size));
  const auto shard =
      MakeShard(model.config, model.row_parallel_blocks, rank, size);
  ASSERT_TRUE(shard.ok()) << shard.status();
  const auto weights = LoadWeights(*model.tensors, model.config, *shard);
  ASSERT_TRUE(weights.ok()) << weights.status();

  ASSERT_EQ(weights->layers.size(), model.config.num_layers);
  for (int i = 0; i < model.config.num_layers; ++i) {
    const Expected expected(model, *shard, i);
    const LayerWeights& layer = weights->layers[i];
    EXPECT_EQ(Decode(layer.qkv), expected.Qkv());
    EXPECT_EQ(Decode(layer.o), expected.O());
    EXPECT_EQ(Decode(layer.mlp.gate_up), expected.GateUp());
    EXPECT_EQ(Decode(layer.mlp.down), expected.Down());
    EXPECT_EQ(layer.o.slice_cols(), shard->o_slice_cols);
    EXPECT_EQ(layer.mlp.down.slice_cols(), shard->mlp.slice_cols);
    EXPECT_EQ(layer.attention_norm, expected.Vector("input_layernorm"));
    EXPECT_EQ(layer.mlp_norm, expected.Vector("post_attention_layernorm"));
    if (model.config.qk_norm) {
      EXPECT_EQ(layer.q_norm, expected.Vector("self_attn.q_norm"));
      EXPECT_EQ(layer.k_norm, expected.Vector("self_attn.k_norm"));
    } else {
      EXPECT_TRUE(layer.q_norm.empty() && layer.k_norm.empty());
    }
  }
  const Expected expected(model, *shard, 0);
  const Matrix embedding = expected.Vocabulary("model.embed_tokens.weight");
  Matrix rows;
  for (int i = 0; i < weights->embedding_rows; ++i) {
    std::vector<float> row(model.config.hidden_size);
    kernels::DecodeRow(weights->embedding_type,
                       weights->embedding + i * weights->embedding_row_bytes,
                       row.size(), row.data());
    rows.push_back(std::move(row));
  }
  EXPECT_EQ(rows, embedding);
  EXPECT_EQ(Decode(weights->head), model.config.tied_embeddings
                                       ? embedding
                                       : expected.Vocabulary("lm_head.weight"));
}

std::string NewPath() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string path = ::testing::TempDir() + test->name() + ".gguf";
  std::filesystem::remove_all(path);
  return path;
}

TEST(LoadWeights, TellsOfEachLayer) {
  const std::string path = NewPath();
  TinyModel tiny;
  tiny.num_layers = 3;
  WriteGguf(tiny, path);
  const auto model = OpenModel(path);
  const auto shard = MakeShard(model->config, model->row_parallel_blocks, 0, 1);
  std::vector<std::pair<int, int>> told;
  const auto weights = LoadWeights(
      *model->tensors, model->config, *shard, kernels::Arithmetic::kStrict,
      /*pool=*/nullptr,
      [&told](int loaded, int layers) { told.emplace_back(loaded, layers); });
  EXPECT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(told, (std::vector<std::pair<int, int>>{{1, 3}, {2, 3}, {3, 3}}));
}

TEST(LoadWeights, GivesEachRankItsSliceOfAFolder) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    SCOPED_TRACE(kernels::DTypeName(type));
    TinyModel tiny;
    tiny.type = type;
    tiny.vocab_size = 510;  // padded on 4 ranks and more
    const std::string folder = NewPath();
    WriteHuggingFaceFolder(tiny, folder, /*num_files=*/2);
    const auto model = OpenModel(folder);
    ASSERT_TRUE(model.ok()) << model.status();
    for (const int size : {1, 2, 3, 4, 8}) {
      for (int rank = 0; rank < size; ++rank) {
        ExpectHoldsItsSlice(*model, rank, size);
      }
    }
  }
}

TEST(LoadWeights, GivesEachRankItsSliceOfAGgufFile) {
  for (const DType type :
       {DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ4_K,
        DType::kQ5_K, DType::kQ6_K}) {
    SCOPED_TRACE(kernels::DTypeName(type));
    TinyModel tiny;
    tiny.architecture = "qwen3";
    tiny.tied_embeddings = true;
    tiny.type = type;
    tiny.hidden_size = 256;
    tiny.head_dim = 64;
    tiny.intermediate_size = 768;
    tiny.num_layers = 1;
    const std::string path = NewPath();
    WriteGguf(tiny, path);
    const auto model = OpenModel(path);
    ASSERT_TRUE(model.ok()) << model.status();
    for (const int size : {1, 2}) {
      for (int rank = 0; rank < size; ++rank) {
        ExpectHoldsItsSlice(*model, rank, size);
      }
    }
  }
}

TEST(LoadWeights, GivesEachRankItsSliceOfWhatIsMadeAsItIsRead) {
  for (const bool tied : {false, true}) {
    TinyModel tiny;
    tiny.architecture = "qwen3";
    tiny.tied_embeddings = tied;
    tiny.head_dim = 32;
    tiny.intermediate_size = 160;
    tiny.vocab_size = 510;
    const std::string folder = NewPath();
    WriteHuggingFaceFolder(tiny, folder);
    for (const WeightOptions& options :
         {WeightOptions{.rounded_to = DType::kQ8_0},
          WeightOptions{.rounded_to = DType::kQ4_0},
          WeightOptions{.random = true},
          WeightOptions{.rounded_to = DType::kQ4_0, .random = true}}) {
      const auto model = OpenModel(folder, 0, options);
      ASSERT_TRUE(model.ok()) << model.status();
      for (const int size : {1, 2, 3, 4, 5}) {
        for (int rank = 0; rank < size; ++rank) {
          ExpectHoldsItsSlice(*model, rank, size);
        }
      }
    }
  }
}

// Nine query heads and three of keys and values, as SmolLM2 has them.
TEST(LoadWeights, GivesRanksUnevenRunsOfHeads) {
  TinyModel tiny;
  tiny.num_heads = 9;
  tiny.num_kv_heads = 3;
  tiny.head_dim = 32;
  tiny.intermediate_size = 160;
  tiny.type = DType::kQ4_1;
  const std::string path = NewPath();
  WriteGguf(tiny, path);
  const auto model = OpenModel(path);
  ASSERT_TRUE(model.ok()) << model.status();
  for (const int size : {1, 2, 3, 4, 5}) {
    for (int rank = 0; rank < size; ++rank) {
      ExpectHoldsItsSlice(*model, rank, size);
    }
  }
}

// A row of o is half a block of down.
TEST(LoadWeights, LoadsOAndDownOfDifferentBlocks) {
  TinyModel tiny;
  tiny.type = DType::kQ4_0;
  tiny.down_type = DType::kQ4_K;
  tiny.intermediate_size = 512;
  const std::string path = NewPath();
  WriteGguf(tiny, path);
  const auto model = OpenModel(path);
  ASSERT_TRUE(model.ok()) << model.status();
  for (const int size : {1, 2}) {
    for (int rank = 0; rank < size; ++rank) {
      ExpectHoldsItsSlice(*model, rank, size);
    }
  }
}

TEST(LoadWeights, PacksForTheArithmetic) {
  TinyModel tiny;
  tiny.type = DType::kBF16;
  const std::string folder = NewPath();
  WriteHuggingFaceFolder(tiny, folder);
  const auto model = OpenModel(folder);
  ASSERT_TRUE(model.ok()) << model.status();
  const Shard shard =
      *MakeShard(model->config, model->row_parallel_blocks, 0, 1);
  kernels::ThreadPool pool({.num_threads = 2, .oversubscribed = true});
  const auto weights = LoadWeights(*model->tensors, model->config, shard,
                                   kernels::Arithmetic::kFast, &pool);
  ASSERT_TRUE(weights.ok()) << weights.status();
  const LayerWeights& layer = weights->layers[0];
  for (const PackedMatrix* matrix : {&layer.qkv, &layer.o, &layer.mlp.gate_up,
                                     &layer.mlp.down, &weights->head}) {
    EXPECT_EQ(matrix->arithmetic(), kernels::Arithmetic::kFast);
    for (const PackedMatrix::Segment& segment : matrix->segments()) {
      EXPECT_EQ(segment.type, kernels::PackedType::kInt16);
    }
  }
}

// Rows and columns as files have them: no whole panels, no whole blocks.
TEST(PackedBytes, IsWhatALoadedModelTakes) {
  for (const bool tied : {false, true}) {
    TinyModel tiny;
    tiny.type = DType::kBF16;
    tiny.tied_embeddings = tied;
    tiny.vocab_size = 510;
    tiny.hidden_size = 72;
    const std::string folder = NewPath();
    WriteHuggingFaceFolder(tiny, folder);
    const auto model = OpenModel(folder);
    ASSERT_TRUE(model.ok()) << model.status();
    const Shard shard =
        *MakeShard(model->config, {.o = 128, .down = 128}, 0, 1);
    for (const auto arithmetic :
         {kernels::Arithmetic::kStrict, kernels::Arithmetic::kFast}) {
      const auto weights =
          LoadWeights(*model->tensors, model->config, shard, arithmetic);
      ASSERT_TRUE(weights.ok()) << weights.status();
      size_t bytes = weights->head.bytes();
      for (const LayerWeights& layer : weights->layers) {
        bytes += layer.qkv.bytes() + layer.o.bytes() +
                 layer.mlp.gate_up.bytes() + layer.mlp.down.bytes();
      }
      EXPECT_EQ(PackedBytes(*model->tensors, model->config, arithmetic), bytes);
    }
  }
}

// The rows of q and k differ in order alone between the two formats.
TEST(LoadWeights, FolderAndGgufFileHoldTheSameValues) {
  const std::string gguf = NewPath(), folder = ::testing::TempDir() + "same";
  WriteGguf(TinyModel(), gguf);
  WriteHuggingFaceFolder(TinyModel(), folder);
  const auto one = OpenModel(gguf), other = OpenModel(folder);
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(one->tensors->Names(), other->tensors->Names());
  for (const std::string& name : one->tensors->Names()) {
    SCOPED_TRACE(name);
    const Matrix a = Decode(*one->tensors->Get(name));
    const Matrix b = Decode(*other->tensors->Get(name));
    if (name.find("q_proj") == std::string::npos &&
        name.find("k_proj") == std::string::npos) {
      EXPECT_EQ(a, b);
    } else {
      EXPECT_NE(a, b);
      EXPECT_THAT(a, ::testing::UnorderedElementsAreArray(b));
    }
  }
}

TEST(LoadWeights, RefusesASourceThatDoesNotFitTheConfig) {
  const std::string path = NewPath();
  WriteGguf(TinyModel(), path);
  auto model = OpenModel(path);
  ASSERT_TRUE(model.ok()) << model.status();
  model->config.num_layers = 3;
  model->config.layers.resize(3);
  const Shard shard = *MakeShard(model->config, {}, 0, 1);
  EXPECT_EQ(LoadWeights(*model->tensors, model->config, shard).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep
