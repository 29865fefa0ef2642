#include "worker/weights/rank_parts.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "worker/model_spec/tensor_names.h"
#include "worker/weights/tensor_table.h"

namespace lockstep {

NamedPart RankParts::Rows(const std::string& name, int64_t begin,
                          int64_t end) const {
  return {
      name,
      {.row_begin = begin, .rows = end - begin, .cols = config_.hidden_size}};
}

NamedPart RankParts::Columns(const std::string& name, int64_t begin,
                             int64_t end) const {
  return {
      name,
      {.rows = config_.hidden_size, .col_begin = begin, .cols = end - begin}};
}

NamedPart RankParts::VocabularyRows(const std::string& name) const {
  return Rows(
      name, shard_.vocab_begin,
      std::min(shard_.vocab_begin + shard_.vocab_rows, config_.vocab_size));
}

NamedPart RankParts::Embedding() const {
  return VocabularyRows(kEmbeddingName);
}

NamedPart RankParts::Head() const {
  return VocabularyRows(config_.tied_embeddings ? kEmbeddingName : kHeadName);
}

std::vector<NamedPart> RankParts::Qkv(int layer) const {
  if (!config_.fused_qkv) {
    return {
        Rows(LayerTensorName(layer, "self_attn.q_proj"), q_begin(), q_end()),
        Rows(LayerTensorName(layer, "self_attn.k_proj"), kv_begin(), kv_end()),
        Rows(LayerTensorName(layer, "self_attn.v_proj"), kv_begin(), kv_end())};
  }
  const std::string name = LayerTensorName(layer, "self_attn.qkv_proj");
  const int64_t keys = HeadValues(config_.num_heads);
  const int64_t values = keys + HeadValues(config_.num_kv_heads);
  return {Rows(name, q_begin(), q_end()),
          Rows(name, keys + kv_begin(), keys + kv_end()),
          Rows(name, values + kv_begin(), values + kv_end())};
}

std::vector<NamedPart> RankParts::QkvBias(int layer) const {
  const auto part = [layer](const char* name, int64_t begin, int64_t end) {
    return NamedPart{LayerBiasName(layer, name),
                     {.rows = 1, .col_begin = begin, .cols = end - begin}};
  };
  if (config_.fused_qkv) {
    const char* const name = "self_attn.qkv_proj";
    const int64_t keys = HeadValues(config_.num_heads);
    const int64_t values = keys + HeadValues(config_.num_kv_heads);
    return {part(name, q_begin(), q_end()),
            part(name, keys + kv_begin(), keys + kv_end()),
            part(name, values + kv_begin(), values + kv_end())};
  }
  return {part("self_attn.q_proj", q_begin(), q_end()),
          part("self_attn.k_proj", kv_begin(), kv_end()),
          part("self_attn.v_proj", kv_begin(), kv_end())};
}

NamedPart RankParts::O(int layer) const {
  return Columns(LayerTensorName(layer, "self_attn.o_proj"), q_begin(),
                 q_end());
}

std::vector<NamedPart> RankParts::GateUp(int layer) const {
  const int64_t begin = shard_.mlp.begin, end = shard_.mlp.end;
  if (!config_.fused_gate_up) {
    return {Rows(LayerTensorName(layer, "mlp.gate_proj"), begin, end),
            Rows(LayerTensorName(layer, "mlp.up_proj"), begin, end)};
  }
  const std::string name = LayerTensorName(layer, "mlp.gate_up_proj");
  const int64_t up = config_.intermediate_size;
  return {Rows(name, begin, end), Rows(name, up + begin, up + end)};
}

NamedPart RankParts::Down(int layer) const {
  return Columns(LayerTensorName(layer, "mlp.down_proj"), shard_.mlp.begin,
                 shard_.mlp.end);
}

NamedPart RankParts::Router(int layer) const {
  return Rows(LayerTensorName(layer, config_.names.router), 0,
              config_.experts.num_experts);
}

std::vector<NamedPart> RankParts::ExpertGateUp(int layer, int expert) const {
  const TensorNames& names = config_.names;
  std::vector<NamedPart> parts;
  for (const char* projection : {names.expert_gate, names.expert_up}) {
    parts.push_back(
        Rows(ExpertTensorName(layer, names.experts, expert, projection),
             shard_.expert.begin, shard_.expert.end));
  }
  return parts;
}

NamedPart RankParts::ExpertDown(int layer, int expert) const {
  const TensorNames& names = config_.names;
  return Columns(
      ExpertTensorName(layer, names.experts, expert, names.expert_down),
      shard_.expert.begin, shard_.expert.end);
}

std::vector<NamedPart> RankParts::SharedGateUp(int layer) const {
  const MlpCut& cut = shard_.shared_expert;
  return {Rows(SharedName(layer, "gate_proj"), cut.begin, cut.end),
          Rows(SharedName(layer, "up_proj"), cut.begin, cut.end)};
}

NamedPart RankParts::SharedDown(int layer) const {
  return Columns(SharedName(layer, "down_proj"), shard_.shared_expert.begin,
                 shard_.shared_expert.end);
}

NamedPart RankParts::SharedGate(int layer) const {
  return Rows(LayerTensorName(layer, config_.names.shared_expert_gate), 0, 1);
}

std::string RankParts::SharedName(int layer, const char* projection) const {
  return LayerTensorName(
      layer, absl::StrCat(config_.names.shared_expert, ".", projection));
}

}  // namespace lockstep
