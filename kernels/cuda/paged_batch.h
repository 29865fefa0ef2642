#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::cuda {

// The tokens of a step, in device memory: as kernels::TokenBatch, but the page
// tables are rows of one array, so that one copy brings all of it.
struct PagedBatch {
  int num_tokens = 0;
  const int32_t* positions = nullptr;    // [num_tokens] in its sequence, from 0
  const int32_t* sequence_of = nullptr;  // [num_tokens] row of page_tables
  const int32_t* page_tables = nullptr;  // [num_sequences, page_table_stride]
  int page_table_stride = 0;
};

// Where one layer's keys and values lie, in device memory: both
// [num_pages, num_kv_heads, page_size, head_dim], T float or BFloat16. Position
// p of a sequence is slot p % page_size of page page_table[p / page_size].
//
// Keys are not transposed as in kernels::PagedKv: a warp reads vectors, each at
// once, and so do tensor cores and FlashInfer, which calls this layout HND.
template <typename T>
struct PagedKv {
  T* keys = nullptr;
  T* values = nullptr;
  int num_kv_heads = 0;  // of this rank
  int page_size = 0;
  int head_dim = 0;

  // Of the vector of a position.
#ifdef __CUDACC__
  __host__ __device__
#endif
      size_t
      Offset(const int32_t* page_table, int position, int kv_head) const {
    const size_t page = page_table[position / page_size];
    return ((page * num_kv_heads + kv_head) * page_size +
            position % page_size) *
           head_dim;
  }
};

}  // namespace lockstep::cuda
