#pragma once

#include <cstddef>

#include "kernels/paged_kv.h"
#include "kernels/token_batch.h"

namespace lockstep::kernels {

// Writes one token's keys and values, k and v [kv_heads, head_dim], to its page
// and slot.
void StoreTokenKv(const float* k, const float* v, const TokenBatch& batch,
                  int token, const PagedKv& kv);

}  // namespace lockstep::kernels
