#pragma once

#include <cstdint>

#include "kernels/cuda/product_args.h"
#include "worker/device/device_layout.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"

namespace lockstep {

// What a mixture of experts needs of device memory beside DeviceActivations,
// for one rank and one step; nothing where the model has none. An expert of a
// token is a row: see cuda::ExpertRowsArgs.
struct ExpertActivations {
  // Names the pieces; they are where `layout` places them.
  ExpertActivations(const ModelConfig& config, const Shard& shard, int tokens,
                    DeviceLayout* layout);
  ExpertActivations(const ExpertActivations&) = delete;
  ExpertActivations& operator=(const ExpertActivations&) = delete;

  float* logits = nullptr;         // [tokens, num_experts]
  int32_t* experts = nullptr;      // [tokens, experts_per_token]
  float* weights = nullptr;        // the same
  int32_t* row_of = nullptr;       // the same
  int32_t* token_of = nullptr;     // [rows]
  int32_t* first_rows = nullptr;   // [experts of the rank + 1]
  cuda::RowTile* tiles = nullptr;  // as many as there may be
  float* outputs = nullptr;        // [rows, hidden_size]
  // Of the expert that all tokens go through, and of its gate.
  float* shared = nullptr;       // [tokens, hidden_size]
  float* shared_gate = nullptr;  // [tokens]
};

}  // namespace lockstep
