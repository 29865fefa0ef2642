#include "worker/weights/model_weights.h"

#include <string>
#include <tuple>
#include <utility>

#include "common/status_macros.h"
#include "kernels/weights/packed_format.h"
#include "worker/checkpoint/tensor_part.h"
#include "worker/model_spec/tensor_names.h"
#include "worker/weights/rank_parts.h"
#include "worker/weights/tensor_table.h"

namespace lockstep {
namespace {

using kernels::PackedMatrix;

size_t RowBytesOf(const Tensor& tensor) {
  return kernels::RowBytes(tensor.type, tensor.shape.back());
}

// Appends a part of `tensor`, as many columns as the matrix has.
void AddPart(const Tensor& tensor, const TensorPart& part,
             const kernels::Packing& packing, PackedMatrix* matrix) {
  const int rows = static_cast<int>(part.rows);
  if (tensor.reader == nullptr) {
    const size_t row_bytes = RowBytesOf(tensor);
    return matrix->AddRows(tensor.type, rows,
                           tensor.bytes.data() + part.row_begin * row_bytes,
                           row_bytes, part.col_begin, packing);
  }
  const auto fill = [&](int first, int count, uint8_t* out) {
    tensor.reader->Read({.row_begin = part.row_begin + first,
                         .rows = count,
                         .col_begin = part.col_begin,
                         .cols = part.cols},
                        out);
  };
  matrix->AddRows(tensor.type, rows, fill, packing);
}

// Reads the tensors of one rank; all are known to have the right shape.
class Loader {
 public:
  Loader(const TensorSource& source, const ModelConfig& config,
         const Shard& shard, kernels::Arithmetic arithmetic,
         const kernels::Packing& packing)
      : source_(source),
        config_(config),
        shard_(shard),
        arithmetic_(arithmetic),
        packing_(packing),
        parts_(&config, &shard) {}

  absl::StatusOr<LayerWeights> Layer(int layer) const {
    LayerWeights weights;
    LOCKSTEP_RETURN_IF_ERROR(Norms(layer, &weights));
    LOCKSTEP_ASSIGN_OR_RETURN(weights.qkv,
                              Rows(parts_.Qkv(layer), arithmetic_));
    if (config_.qkv_bias) {
      LOCKSTEP_ASSIGN_OR_RETURN(weights.qkv_bias, QkvBias(layer));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(weights.o,
                              Columns(parts_.O(layer), shard_.o_slice_cols));
    if (config_.layers[layer].has_experts) {
      LOCKSTEP_ASSIGN_OR_RETURN(weights.experts, Experts(layer));
    } else {
      LOCKSTEP_ASSIGN_OR_RETURN(
          weights.mlp,
          Mlp(parts_.GateUp(layer), parts_.Down(layer), shard_.mlp.slice_cols));
    }
    return weights;
  }

  absl::Status Embedding(ModelWeights* weights) const {
    const auto [name, part] = parts_.Embedding();
    LOCKSTEP_ASSIGN_OR_RETURN(const Tensor tensor, source_.Get(name));
    weights->embedding_type = tensor.type;
    weights->embedding_row_bytes = RowBytesOf(tensor);
    weights->embedding_rows = static_cast<int>(part.rows);
    if (tensor.reader == nullptr) {
      weights->embedding =
          tensor.bytes.data() + part.row_begin * weights->embedding_row_bytes;
      return absl::OkStatus();
    }
    uint8_t* made =
        weights->arena.Allocate(part.rows * weights->embedding_row_bytes);
    tensor.reader->Read(part, made);
    weights->embedding = made;
    return absl::OkStatus();
  }

  absl::StatusOr<PackedMatrix> Head() const {
    if (!config_.has_head) return PackedMatrix();
    return Rows({parts_.Head()}, arithmetic_);
  }

  // What a norm multiplies by.
  absl::StatusOr<std::vector<float>> Norm(const std::string& name) const {
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<float> values, Vector(name));
    for (float& value : values) value += config_.norm_offset ? 1.0f : 0.0f;
    return values;
  }

 private:
  // A vector, in fp32.
  absl::StatusOr<std::vector<float>> Vector(const std::string& name) const {
    LOCKSTEP_ASSIGN_OR_RETURN(const Tensor tensor, source_.Get(name));
    std::vector<float> values(tensor.shape.back());
    DecodePart(tensor, WholeOf(tensor), values.data());
    return values;
  }

  absl::Status Norms(int layer, LayerWeights* weights) const {
    const TensorNames& names = config_.names;
    for (const auto& [name, norm] :
         {std::pair{names.attention_norm, &weights->attention_norm},
          {names.attention_post_norm, &weights->attention_post_norm},
          {names.mlp_norm, &weights->mlp_norm},
          {names.mlp_post_norm, &weights->mlp_post_norm}}) {
      if (*name == 0) continue;
      LOCKSTEP_ASSIGN_OR_RETURN(*norm, Norm(LayerTensorName(layer, name)));
    }
    if (!config_.qk_norm && !config_.projection_norm) return absl::OkStatus();
    for (const auto& [name, norm, begin, end] :
         {std::tuple{"self_attn.q_norm", &weights->q_norm, shard_.head_begin,
                     shard_.head_end},
          {"self_attn.k_norm", &weights->k_norm, shard_.kv_head_begin,
           shard_.kv_head_end}}) {
      LOCKSTEP_ASSIGN_OR_RETURN(*norm, Norm(LayerTensorName(layer, name)));
      if (config_.projection_norm) {
        *norm = {norm->begin() + begin * config_.head_dim,
                 norm->begin() + end * config_.head_dim};
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ExpertsWeights> Experts(int layer) const {
    ExpertsWeights weights;
    LOCKSTEP_ASSIGN_OR_RETURN(weights.router, Router(parts_.Router(layer)));
    if (config_.experts.choice_bias) {
      LOCKSTEP_ASSIGN_OR_RETURN(weights.choice_bias,
                                Vector(RouterBiasName(layer, config_.names)));
    }
    for (int i = shard_.expert_begin; i < shard_.expert_end; ++i) {
      LOCKSTEP_ASSIGN_OR_RETURN(
          MlpWeights expert,
          Mlp(parts_.ExpertGateUp(layer, i), parts_.ExpertDown(layer, i),
              shard_.expert.slice_cols));
      weights.experts.push_back(std::move(expert));
    }
    if (config_.experts.shared_intermediate_size == 0) return weights;
    LOCKSTEP_ASSIGN_OR_RETURN(
        weights.shared,
        Mlp(parts_.SharedGateUp(layer), parts_.SharedDown(layer),
            shard_.shared_expert.slice_cols));
    if (config_.experts.shared_gate) {
      LOCKSTEP_ASSIGN_OR_RETURN(weights.shared_gate,
                                Router(parts_.SharedGate(layer)));
    }
    return weights;
  }

  // Strict; see TensorSpec.
  absl::StatusOr<PackedMatrix> Router(const NamedPart& rows) const {
    return Rows({rows}, kernels::Arithmetic::kStrict);
  }

  absl::StatusOr<MlpWeights> Mlp(const std::vector<NamedPart>& gate_up,
                                 const NamedPart& down, int slice_cols) const {
    MlpWeights weights;
    LOCKSTEP_ASSIGN_OR_RETURN(weights.gate_up, Rows(gate_up, arithmetic_));
    LOCKSTEP_ASSIGN_OR_RETURN(weights.down, Columns(down, slice_cols));
    return weights;
  }

  absl::StatusOr<std::vector<float>> QkvBias(int layer) const {
    std::vector<float> bias;
    for (const auto& [name, part] : parts_.QkvBias(layer)) {
      LOCKSTEP_ASSIGN_OR_RETURN(const Tensor tensor, source_.Get(name));
      const size_t before = bias.size();
      bias.resize(before + part.cols);
      DecodePart(tensor, part, &bias[before]);
    }
    return bias;
  }

  // Rows of one or more tensors, below each other.
  absl::StatusOr<PackedMatrix> Rows(const std::vector<NamedPart>& parts,
                                    kernels::Arithmetic arithmetic) const {
    PackedMatrix matrix(config_.hidden_size, config_.hidden_size, arithmetic);
    for (const auto& [name, part] : parts) {
      LOCKSTEP_ASSIGN_OR_RETURN(const Tensor tensor, source_.Get(name));
      AddPart(tensor, part, packing_, &matrix);
    }
    return matrix;
  }

  // All rows of a tensor, cut to some of its columns.
  absl::StatusOr<PackedMatrix> Columns(const NamedPart& columns,
                                       int slice_cols) const {
    LOCKSTEP_ASSIGN_OR_RETURN(const Tensor tensor, source_.Get(columns.name));
    PackedMatrix matrix(static_cast<int>(columns.part.cols), slice_cols,
                        arithmetic_);
    AddPart(tensor, columns.part, packing_, &matrix);
    return matrix;
  }

  const TensorSource& source_;
  const ModelConfig& config_;
  const Shard& shard_;
  const kernels::Arithmetic arithmetic_;
  const kernels::Packing packing_;
  const RankParts parts_;
};

bool IsPacked(const TensorSpec& spec, const ModelConfig& config) {
  if (spec.shape.size() == 1) return false;  // a norm
  return spec.name != kEmbeddingName || config.tied_embeddings;
}

}  // namespace

int64_t PackedBytes(const TensorSource& source, const ModelConfig& config,
                    kernels::Arithmetic arithmetic) {
  int64_t bytes = 0;
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    const auto tensor = source.Get(spec.name);
    if (!tensor.ok() || !IsPacked(spec, config)) continue;
    const int64_t panels =
        (spec.shape[0] + kernels::kPanelRows - 1) / kernels::kPanelRows;
    bytes += panels *
             kernels::SliceBytes(
                 kernels::PackedTypeOf(
                     tensor->type,
                     spec.routes ? kernels::Arithmetic::kStrict : arithmetic),
                 static_cast<int>(spec.shape[1]));
  }
  return bytes;
}

absl::StatusOr<ModelWeights> LoadWeights(const TensorSource& source,
                                         const ModelConfig& config,
                                         const Shard& shard,
                                         kernels::Arithmetic arithmetic,
                                         kernels::ThreadPool* pool,
                                         const LayerLoaded& on_layer) {
  LOCKSTEP_RETURN_IF_ERROR(CheckTensors(source, config));
  ModelWeights weights;
  const Loader loader(source, config, shard, arithmetic,
                      {.pool = pool, .arena = &weights.arena});
  LOCKSTEP_RETURN_IF_ERROR(loader.Embedding(&weights));
  for (int i = 0; i < config.num_layers; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(LayerWeights layer, loader.Layer(i));
    weights.layers.push_back(std::move(layer));
    source.DropPages();
    if (on_layer != nullptr) on_layer(i + 1, config.num_layers);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(weights.final_norm, loader.Norm(kFinalNormName));
  LOCKSTEP_ASSIGN_OR_RETURN(weights.head, loader.Head());
  source.DropPages();
  return weights;
}

}  // namespace lockstep
