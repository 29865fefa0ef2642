#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"
#include "kernels/paged_kv.h"
#include "kernels/token_batch.h"

namespace lockstep::kernels {

// Cuts attention over a batch into tiles: consecutive tokens of one sequence
// that share a key-value head, so that its keys and values are read once for
// all of them. An item is (token, key-value head); the first token of a tile
// does the tile's work, the others none.
struct AttentionTiles {
  const KernelTable* table;
  const float* q;  // [num_tokens, heads, head_dim]
  ptrdiff_t q_stride;
  int heads;
  const int32_t* kv_head_of;  // [heads]
  float scale;
  const TokenBatch* batch;
  const PagedKv* kv;
  float* out;  // [num_tokens, heads, head_dim]
  ptrdiff_t out_stride;

  int64_t items() const {
    return static_cast<int64_t>(batch->num_tokens) * kv->num_kv_heads;
  }

  // Works on the calling thread alone; items may be done in any order.
  void Compute(int64_t item) const;
};

}  // namespace lockstep::kernels
