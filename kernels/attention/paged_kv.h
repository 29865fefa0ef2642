#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/kv_type.h"

namespace lockstep::kernels {

// The largest head_dim there are kernels for.
inline constexpr int kMaxHeadDim = 512;

// Bytes of one number of a key or value.
inline constexpr size_t KvElementBytes(KvType type) {
  switch (type) {
    case KvType::kF32:
      return 4;
    case KvType::kF16:
    case KvType::kBF16:
      return 2;
    case KvType::kInt8:
      return 1;
  }
  return 0;
}

// Where one layer's keys and values lie. Position p of a sequence is slot
// p % page_size of page page_table[p / page_size]. A value vector is
// contiguous; keys are transposed in their page, so that the scores of
// neighbouring positions are computed side by side without a sum across SIMD
// lanes.
//
// Elements are float, binary16, the upper half of a float (kBF16) or int8_t,
// which count in units of their vector's scale (kInt8).
struct PagedKv {
  KvType type = KvType::kF32;
  void* keys = nullptr;    // [num_pages, num_kv_heads, head_dim, page_size]
  void* values = nullptr;  // [num_pages, num_kv_heads, page_size, head_dim]
  // kInt8 only: [num_pages, num_kv_heads, page_size]
  float* key_scales = nullptr;
  float* value_scales = nullptr;
  int num_kv_heads = 0;  // of this rank
  int page_size = 0;     // a power of two, 1 to 256
  int head_dim = 0;

  // Offset of a value vector of head_dim elements.
  size_t Offset(int32_t page, int kv_head, int slot) const {
    return ScaleOffset(page, kv_head, slot) * head_dim;
  }

  // Offset of a key's first element; the others follow at steps of page_size.
  size_t KeyOffset(int32_t page, int kv_head, int slot) const {
    return ScaleOffset(page, kv_head, 0) * head_dim + slot;
  }

  size_t ScaleOffset(int32_t page, int kv_head, int slot) const {
    return (static_cast<size_t>(page) * num_kv_heads + kv_head) * page_size +
           slot;
  }
};

}  // namespace lockstep::kernels
