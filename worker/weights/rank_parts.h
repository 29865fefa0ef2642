#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/checkpoint/tensor_source.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"

namespace lockstep {

// A part of a tensor, by its name; a vector is one row.
struct NamedPart {
  std::string name;
  TensorPart part;
};

// Of which parts of which tensors the matrices of one rank are made, whatever
// memory they go to; those of a list lie below each other. Points to config and
// shard.
//
//   for (const NamedPart& part : RankParts(&config, &shard).Qkv(layer)) …
class RankParts {
 public:
  RankParts(const ModelConfig* config, const Shard* shard)
      : config_(*config), shard_(*shard) {}

  // Without the padding of the last rank.
  NamedPart Embedding() const;
  NamedPart Head() const;  // of the embedding, where they are one

  std::vector<NamedPart> Qkv(int layer) const;
  // Of the rows of Qkv. REQUIRES: the model has biases.
  std::vector<NamedPart> QkvBias(int layer) const;
  NamedPart O(int layer) const;

  // Of an MLP. REQUIRES: the layer has one.
  std::vector<NamedPart> GateUp(int layer) const;
  NamedPart Down(int layer) const;

  // Of a mixture of experts. REQUIRES: the layer has one, and a shared expert,
  // or a gate of it, where these are asked for.
  NamedPart Router(int layer) const;  // all rows of it
  std::vector<NamedPart> ExpertGateUp(int layer, int expert) const;
  NamedPart ExpertDown(int layer, int expert) const;
  std::vector<NamedPart> SharedGateUp(int layer) const;
  NamedPart SharedDown(int layer) const;
  NamedPart SharedGate(int layer) const;

 private:
  // Rows of a tensor that has hidden_size columns, and columns of one that has
  // as many rows.
  NamedPart Rows(const std::string& name, int64_t begin, int64_t end) const;
  NamedPart Columns(const std::string& name, int64_t begin, int64_t end) const;
  // Values of the heads.
  int64_t q_begin() const { return HeadValues(shard_.head_begin); }
  int64_t q_end() const { return HeadValues(shard_.head_end); }
  int64_t kv_begin() const { return HeadValues(shard_.kv_head_begin); }
  int64_t kv_end() const { return HeadValues(shard_.kv_head_end); }
  int64_t HeadValues(int heads) const {
    return int64_t{heads} * config_.head_dim;
  }
  NamedPart VocabularyRows(const std::string& name) const;
  // Of the shared expert's.
  std::string SharedName(int layer, const char* projection) const;

  const ModelConfig& config_;
  const Shard& shard_;
};

}  // namespace lockstep
