#pragma once

#include <cstddef>

#include "kernels/attention/kv_type.h"
#include "kernels/attention/paged_kv.h"
#include "kernels/attention/token_batch.h"

// How vectors of floats become the keys and values of each KvType. Plain code,
// so that every instruction set stores the same bits.
namespace lockstep::kernels {

// Writes one token's keys and values, k and v [kv_heads, head_dim], to its page
// and slot.
void StoreTokenKv(const float* k, const float* v, const TokenBatch& batch,
                  int token, const PagedKv& kv);

// Writes vector x [count] to out[0], out[stride], …; `scale` is written for
// kInt8 alone: the largest magnitude over 127, or NaN, and with it the whole
// vector, if a number is not finite.
void EncodeKv(KvType type, const float* x, int count, void* out,
              ptrdiff_t stride, float* scale);

// Element `index` of what EncodeKv wrote; kInt8 without its scale.
float DecodeKv(KvType type, const void* data, size_t index);

}  // namespace lockstep::kernels
