#pragma once

#include <cstdint>

#include "worker/cuda_engine/expert_activations.h"
#include "worker/device/device_layout.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"

namespace lockstep {

// What flows between the kernels of one rank in a step, in device memory:
// row-major, a row a token of the batch, rows without gaps. What products read
// is of T, float or BFloat16; what ranks add up, and the residual stream, is
// fp32.
template <typename T>
struct DeviceActivations {
  struct Limits {
    int tokens = 0;  // of a step
    int logits_rows = 0;
  };

  // Names the pieces; they are where `layout` places them.
  DeviceActivations(const ModelConfig& config, const Shard& shard,
                    const Limits& limits, DeviceLayout* layout);
  DeviceActivations(const DeviceActivations&) = delete;
  DeviceActivations& operator=(const DeviceActivations&) = delete;

  const int q_size;   // query heads of this rank · head_dim
  const int kv_size;  // key-value heads of this rank · head_dim

  float* hidden = nullptr;  // [tokens, hidden_size], the residual stream
  float* delta = nullptr;   // [tokens, hidden_size], what a block adds to it
  T* normed = nullptr;      // [tokens, hidden_size]
  T* qkv = nullptr;         // [tokens, q_size + 2·kv_size]
  T* attention = nullptr;   // [tokens, q_size]
  // [tokens, heads + kv_heads] of all ranks, where whole projections are
  // normed.
  float* head_squares = nullptr;
  // [tokens, 2·intermediate] and [tokens, intermediate], a row for each expert
  // of a token where these are experts.
  T* gate_up = nullptr;
  T* activated = nullptr;
  ExpertActivations experts;

  T* head_input = nullptr;    // [rows, hidden_size]
  float* gathered = nullptr;  // [ranks, rows, vocab_rows]
  float* logits = nullptr;    // [rows, ranks·vocab_rows]; one rank's: gathered
  // [rows], of each row of logits, or kNoFiniteLogit.
  uint32_t* best_ids = nullptr;
};

}  // namespace lockstep
