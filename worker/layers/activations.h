#pragma once

#include <cstdint>

#include "worker/layers/float_buffer.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"

namespace lockstep {

// What flows between the layers of one rank in a step; fp32, row-major, a row a
// token of the batch. Rows follow each other without gaps.
struct Activations {
  Activations(const ModelConfig& config, const Shard& shard, int max_tokens);

  // Bytes of all buffers.
  static int64_t Bytes(const ModelConfig& config, const Shard& shard,
                       int max_tokens);

  int hidden_size;
  int q_size;   // query heads of this rank · head_dim
  int kv_size;  // key-value heads of this rank · head_dim

  FloatBuffer hidden;     // [tokens, hidden_size], the residual stream
  FloatBuffer normed;     // [tokens, hidden_size]
  FloatBuffer qkv;        // [tokens, q_size + 2·kv_size]
  FloatBuffer attention;  // [tokens, q_size]
  // Of an MLP with the rank's intermediate size, or of all experts with that of
  // an expert and a row for each expert of a token.
  FloatBuffer gate_up;    // [rows, 2·intermediate], where it is needed
  FloatBuffer activated;  // [rows, intermediate]
  FloatBuffer delta;      // [tokens, hidden_size], what a block adds to hidden
  // Of whole projections that are normed: Σx² of each query head, then of each
  // key-value head, of all ranks.
  FloatBuffer head_squares;  // [tokens, num_heads + num_kv_heads]
};

}  // namespace lockstep
