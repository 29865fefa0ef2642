#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::kernels {

// The largest head_dim there are kernels for.
inline constexpr int kMaxHeadDim = 512;

// Where one layer's keys and values lie, fp32. Position p of a sequence is slot
// p % page_size of page page_table[p / page_size]. A value vector is
// contiguous; keys are transposed in their page, so that the scores of
// neighbouring positions are computed side by side without a sum across SIMD
// lanes.
struct PagedKv {
  float* keys = nullptr;    // [num_pages, num_kv_heads, head_dim, page_size]
  float* values = nullptr;  // [num_pages, num_kv_heads, page_size, head_dim]
  int num_kv_heads = 0;     // of this rank
  int page_size = 0;        // a power of two, 1 to 256
  int head_dim = 0;

  // Offset of a value vector of head_dim floats.
  size_t Offset(int32_t page, int kv_head, int slot) const {
    return (Block(page, kv_head) + slot) * head_dim;
  }

  // Offset of a key's first element; the others follow at steps of page_size.
  size_t KeyOffset(int32_t page, int kv_head, int slot) const {
    return Block(page, kv_head) * head_dim + slot;
  }

 private:
  size_t Block(int32_t page, int kv_head) const {
    return (static_cast<size_t>(page) * num_kv_heads + kv_head) * page_size;
  }
};

}  // namespace lockstep::kernels
