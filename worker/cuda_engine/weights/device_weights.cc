#include "worker/cuda_engine/weights/device_weights.h"

#include <absl/strings/string_view.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "common/status_macros.h"
#include "kernels/weights/dtype.h"
#include "worker/checkpoint/tensor_part.h"
#include "worker/cuda_engine/weights/weight_upload.h"
#include "worker/device/device_layout.h"
#include "worker/model_spec/tensor_names.h"
#include "worker/weights/rank_parts.h"
#include "worker/weights/tensor_table.h"

namespace lockstep {
namespace {

using kernels::DType;

// A part of a tensor, and where it goes.
struct Piece {
  Tensor tensor;
  TensorPart part;
  DType type;
  std::function<CudaApi::Address()> address;  // once the layout is placed
  float added = 0;                            // to each value
};

CudaApi::Address AddressOf(const void* on_device) {
  return reinterpret_cast<CudaApi::Address>(on_device);
}

// Lists what a rank's weights are made of, in the order of the layers.
class Planner {
 public:
  Planner(const TensorSource& source, const ModelConfig& config,
          const Shard& shard)
      : source_(source),
        config_(config),
        shard_(shard),
        parts_(&config, &shard) {}

  absl::Status Plan(DeviceWeights* weights) {
    LOCKSTEP_RETURN_IF_ERROR(CheckTensors(source_, config_));
    LOCKSTEP_RETURN_IF_ERROR(Plan(parts_.Embedding(), &weights->embedding));
    weights->layers.resize(config_.num_layers);
    for (int i = 0; i < config_.num_layers; ++i) {
      LOCKSTEP_RETURN_IF_ERROR(PlanLayer(i, &weights->layers[i]));
    }
    LOCKSTEP_RETURN_IF_ERROR(PlanNorm(kFinalNormName, &weights->final_norm));
    if (config_.tied_embeddings || !config_.has_head) return absl::OkStatus();
    return Plan(parts_.Head(), &weights->head);
  }

  const DeviceLayout& layout() const { return layout_; }
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  absl::Status PlanLayer(int i, DeviceLayer* layer) {
    const TensorNames& names = config_.names;
    const auto name = [i](absl::string_view of) {
      return LayerTensorName(i, of);
    };
    for (const auto& [norm, vector] :
         {std::pair{names.attention_norm, &layer->attention_norm},
          {names.attention_post_norm, &layer->attention_post_norm},
          {names.mlp_norm, &layer->mlp_norm},
          {names.mlp_post_norm, &layer->mlp_post_norm}}) {
      if (*norm == 0) continue;
      LOCKSTEP_RETURN_IF_ERROR(PlanNorm(name(norm), vector));
    }
    LOCKSTEP_RETURN_IF_ERROR(Plan(parts_.Qkv(i), &layer->qkv));
    if (config_.qkv_bias) {
      LOCKSTEP_RETURN_IF_ERROR(
          PlanVector(parts_.QkvBias(i), /*added=*/0, &layer->qkv_bias));
    }
    LOCKSTEP_RETURN_IF_ERROR(PlanHeadNorms(i, layer));
    LOCKSTEP_RETURN_IF_ERROR(Plan({parts_.O(i)}, &layer->o));
    if (config_.layers[i].has_experts) return PlanExperts(i, &layer->experts);
    LOCKSTEP_RETURN_IF_ERROR(Plan(parts_.GateUp(i), &layer->gate_up));
    return Plan({parts_.Down(i)}, &layer->down);
  }

  absl::Status PlanExperts(int i, DeviceExperts* experts) {
    LOCKSTEP_RETURN_IF_ERROR(Plan(parts_.Router(i), &experts->router));
    if (config_.experts.choice_bias) {
      const std::string name = RouterBiasName(i, config_.names);
      LOCKSTEP_ASSIGN_OR_RETURN(const Tensor bias, source_.Get(name));
      LOCKSTEP_RETURN_IF_ERROR(PlanVector({{name, WholeOf(bias)}}, /*added=*/0,
                                          &experts->choice_bias));
    }
    std::vector<std::vector<NamedPart>> gate_up, down;
    for (int n = shard_.expert_begin; n < shard_.expert_end; ++n) {
      gate_up.push_back(parts_.ExpertGateUp(i, n));
      down.push_back({parts_.ExpertDown(i, n)});
    }
    LOCKSTEP_RETURN_IF_ERROR(PlanEach(gate_up, &experts->gate_up));
    LOCKSTEP_RETURN_IF_ERROR(PlanEach(down, &experts->down));
    if (config_.experts.shared_intermediate_size == 0) return absl::OkStatus();
    LOCKSTEP_RETURN_IF_ERROR(
        Plan(parts_.SharedGateUp(i), &experts->shared_gate_up));
    LOCKSTEP_RETURN_IF_ERROR(
        Plan({parts_.SharedDown(i)}, &experts->shared_down));
    if (!config_.experts.shared_gate) return absl::OkStatus();
    return Plan(parts_.SharedGate(i), &experts->shared_gate);
  }

  // Of each head, or those of the rank's heads where the projections are
  // normed.
  absl::Status PlanHeadNorms(int i, DeviceLayer* layer) {
    const std::string q_norm = LayerTensorName(i, "self_attn.q_norm");
    const std::string k_norm = LayerTensorName(i, "self_attn.k_norm");
    if (config_.qk_norm) {
      LOCKSTEP_RETURN_IF_ERROR(PlanNorm(q_norm, &layer->q_norm));
      return PlanNorm(k_norm, &layer->k_norm);
    }
    if (!config_.projection_norm) return absl::OkStatus();
    LOCKSTEP_RETURN_IF_ERROR(
        PlanVector({HeadValues(q_norm, shard_.head_begin, shard_.head_end)},
                   NormOffset(), &layer->q_norm));
    return PlanVector(
        {HeadValues(k_norm, shard_.kv_head_begin, shard_.kv_head_end)},
        NormOffset(), &layer->k_norm);
  }

  NamedPart HeadValues(const std::string& name, int begin, int end) const {
    const int64_t dim = config_.head_dim;
    return {name,
            {.rows = 1, .col_begin = begin * dim, .cols = (end - begin) * dim}};
  }

  absl::Status Plan(const std::vector<NamedPart>& below_each_other,
                    DeviceMatrix* matrix) {
    return PlanEach({below_each_other}, matrix);
  }

  // Of several matrices of one shape, each of the same pieces below each other.
  // Neighbours of one type become one part, of which the first matrix has its
  // rows above those of the second.
  absl::Status PlanEach(const std::vector<std::vector<NamedPart>>& matrices,
                        DeviceMatrix* matrix) {
    if (matrices.empty()) return absl::OkStatus();
    const std::vector<NamedPart>& first = matrices[0];
    matrix->parts.reserve(first.size());  // addresses stay
    for (size_t i = 0, end; i < first.size(); i = end) {
      LOCKSTEP_ASSIGN_OR_RETURN(const DType type, TypeOf(matrices, i));
      for (end = i + 1; end < first.size(); ++end) {
        LOCKSTEP_ASSIGN_OR_RETURN(const DType other, TypeOf(matrices, end));
        if (other != type) break;
      }
      matrix->parts.push_back(
          {.type = type, .cols = static_cast<int>(first[i].part.cols)});
      cuda::StoredMatrix& part = matrix->parts.back();
      for (const std::vector<NamedPart>& pieces : matrices) {
        for (size_t piece = i; piece < end; ++piece) {
          LOCKSTEP_RETURN_IF_ERROR(AddPiece(pieces[piece], &part));
        }
      }
      AddToLayout(&part);
      part.rows /= static_cast<int>(matrices.size());
    }
    return absl::OkStatus();
  }

  // Of piece `i` of all matrices; F32 where they differ.
  absl::StatusOr<DType> TypeOf(
      const std::vector<std::vector<NamedPart>>& matrices, size_t i) const {
    LOCKSTEP_ASSIGN_OR_RETURN(const Tensor first,
                              source_.Get(matrices[0][i].name));
    for (const std::vector<NamedPart>& pieces : matrices) {
      LOCKSTEP_ASSIGN_OR_RETURN(const Tensor tensor,
                                source_.Get(pieces[i].name));
      if (tensor.type != first.type) return DType::kF32;
    }
    return first.type;
  }

  absl::Status Plan(const NamedPart& rows, cuda::StoredMatrix* matrix) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Tensor tensor, source_.Get(rows.name));
    matrix->type = tensor.type;
    matrix->cols = static_cast<int>(rows.part.cols);
    LOCKSTEP_RETURN_IF_ERROR(AddPiece(rows, matrix));
    AddToLayout(matrix);
    return absl::OkStatus();
  }

  // Below the rows that the matrix has.
  absl::Status AddPiece(const NamedPart& named, cuda::StoredMatrix* matrix) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Tensor tensor, source_.Get(named.name));
    const size_t offset =
        matrix->rows * kernels::RowBytes(matrix->type, matrix->cols);
    pieces_.push_back({tensor, named.part, matrix->type, [matrix, offset] {
                         return AddressOf(matrix->data + offset);
                       }});
    matrix->rows += static_cast<int>(named.part.rows);
    return absl::OkStatus();
  }

  void AddToLayout(cuda::StoredMatrix* matrix) {
    layout_.Add("a weight",
                matrix->rows * kernels::RowBytes(matrix->type, matrix->cols),
                &matrix->data);
  }

  absl::Status PlanNorm(const std::string& name, const float** vector) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Tensor tensor, source_.Get(name));
    return PlanVector({{name, WholeOf(tensor)}}, NormOffset(), vector);
  }

  float NormOffset() const { return config_.norm_offset ? 1 : 0; }

  // In fp32, one after another, `added` to each value.
  absl::Status PlanVector(const std::vector<NamedPart>& parts, float added,
                          const float** vector) {
    size_t size = 0;
    for (const auto& [name, part] : parts) {
      LOCKSTEP_ASSIGN_OR_RETURN(const Tensor tensor, source_.Get(name));
      pieces_.push_back({tensor, part, DType::kF32,
                         [vector, size] { return AddressOf(*vector + size); },
                         added});
      size += part.cols;
    }
    layout_.Add("a vector of weights", size, vector);
    return absl::OkStatus();
  }

  const TensorSource& source_;
  const ModelConfig& config_;
  const Shard& shard_;
  const RankParts parts_;
  DeviceLayout layout_;
  std::vector<Piece> pieces_;
};

absl::Status CopyAll(const TensorSource& source,
                     const std::vector<Piece>& pieces, CudaStream* stream) {
  size_t buffer_bytes = WeightUpload::kUsualBytes;
  for (const Piece& piece : pieces) {
    buffer_bytes =
        std::max(buffer_bytes, kernels::RowBytes(piece.type, piece.part.cols));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto upload,
                            WeightUpload::Create(stream, buffer_bytes));
  for (const Piece& piece : pieces) {
    LOCKSTEP_RETURN_IF_ERROR(upload->Copy(piece.tensor, piece.part, piece.type,
                                          piece.address(), piece.added));
    source.DropPages();
  }
  return stream->Synchronize();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceWeights>> LoadDeviceWeights(
    const TensorSource& source, const ModelConfig& config, const Shard& shard,
    CudaStream* stream) {
  auto weights = std::make_unique<DeviceWeights>();
  Planner planner(source, config, shard);
  LOCKSTEP_RETURN_IF_ERROR(planner.Plan(weights.get()));
  LOCKSTEP_ASSIGN_OR_RETURN(weights->arena,
                            DeviceArena::Create(&stream->device(), "weights",
                                                planner.layout().bytes()));
  LOCKSTEP_RETURN_IF_ERROR(planner.layout().PlaceIn(weights->arena.get()));
  LOCKSTEP_RETURN_IF_ERROR(CopyAll(source, planner.pieces(), stream));
  if (config.tied_embeddings) weights->head = weights->embedding;
  return weights;
}

absl::StatusOr<int64_t> DeviceWeightBytes(const TensorSource& source,
                                          const ModelConfig& config,
                                          const Shard& shard) {
  DeviceWeights weights;
  Planner planner(source, config, shard);
  LOCKSTEP_RETURN_IF_ERROR(planner.Plan(&weights));
  return static_cast<int64_t>(planner.layout().bytes());
}

}  // namespace lockstep
