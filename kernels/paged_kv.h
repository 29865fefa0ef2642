#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::kernels {

// Where one layer's keys and values lie: fp32 [page][kv_head][slot][head_dim],
// keys and values apart. Position p of a sequence is slot p % page_size of page
// page_table[p / page_size].
struct PagedKv {
  float* keys = nullptr;    // [num_pages, num_kv_heads, page_size, head_dim]
  float* values = nullptr;  // the same
  int num_kv_heads = 0;     // of this rank
  int page_size = 0;        // a power of two, 1 to 256
  int head_dim = 0;

  // Offset of a vector of head_dim floats.
  size_t Offset(int32_t page, int kv_head, int slot) const {
    return ((static_cast<size_t>(page) * num_kv_heads + kv_head) * page_size +
            slot) *
           head_dim;
  }
};

}  // namespace lockstep::kernels
