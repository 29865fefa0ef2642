#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/attention_conformance.h"
#include "kernels/cuda/kernel_run.h"
#include "kernels/cuda/paged_batch.h"
#include "kernels/ops_conformance.h"

// A batch and its pages as the kernels here take them, beside what the tests of
// kernels/ make of the same.
namespace lockstep::cuda {

// The page tables of a batch in one array.
class FlatBatch {
 public:
  FlatBatch(const kernels::AttentionShape& shape,
            const kernels::TokenBatch& batch)
      : batch_(batch) {
    for (const kernels::Batch::Range& range : shape.ranges) {
      stride_ = std::max(stride_, PagesOf(shape, range));
    }
    tables_.assign(stride_ * shape.ranges.size(), -1);
    for (size_t s = 0; s < shape.ranges.size(); ++s) {
      std::copy_n(batch.page_tables[s], PagesOf(shape, shape.ranges[s]),
                  tables_.begin() + s * stride_);
    }
  }

  // `count` tokens from `first` on.
  PagedBatch view(int first, int count) const {
    return {count, batch_.positions + first, batch_.sequence_of + first,
            tables_.data(), stride_};
  }
  PagedBatch view() const { return view(0, batch_.num_tokens); }

 private:
  static int PagesOf(const kernels::AttentionShape& shape,
                     const kernels::Batch::Range& range) {
    return (range.end + shape.page_size - 1) / shape.page_size;
  }

  const kernels::TokenBatch batch_;
  int stride_ = 0;
  std::vector<int32_t> tables_;
};

// Pages of keys and values; what was not stored is no number: all bits are set.
template <typename T>
class Pages {
 public:
  Pages(const kernels::AttentionShape& shape, int num_pages)
      : shape_(shape),
        keys_(size_t{1} * num_pages * shape.kv_heads * shape.page_size *
              shape.head_dim) {
    std::memset(keys_.data(), 0xff, keys_.size() * sizeof(T));
    values_ = keys_;
  }

  PagedKv<T> kv() {
    return {keys_.data(), values_.data(), shape_.kv_heads, shape_.page_size,
            shape_.head_dim};
  }

  // Those a batch's sequences have from their beginning on, in both layouts.
  void Fill(const kernels::TokenBatch& batch, const kernels::Cache& cache,
            kernels::Ops* ops, std::mt19937& random) {
    constexpr int32_t kOnlySequence = 0;
    const int dim = shape_.head_dim, row = shape_.kv_heads * dim;
    for (size_t s = 0; s < shape_.ranges.size(); ++s) {
      const int32_t* const table = batch.page_tables[s];
      for (int p = 0; p < shape_.ranges[s].end; ++p) {
        const auto k = RandomValues<T>(row, random);
        const auto v = RandomValues<T>(row, random);
        ops->StoreKv(Floats(k).data(), row, Floats(v).data(), row,
                     {1, &p, &kOnlySequence, batch.page_tables + s},
                     cache.kv());
        for (int head = 0; head < shape_.kv_heads; ++head) {
          const size_t at = kv().Offset(table, p, head);
          std::copy_n(&k[head * dim], dim, &keys_[at]);
          std::copy_n(&v[head * dim], dim, &values_[at]);
        }
      }
    }
  }

 private:
  const kernels::AttentionShape shape_;
  std::vector<T> keys_, values_;
};

}  // namespace lockstep::cuda
