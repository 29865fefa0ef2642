#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/attention/kv_store.h"
#include "kernels/attention/kv_type.h"
#include "kernels/attention/paged_kv.h"
#include "kernels/attention/token_batch.h"

// What tests of attention compute over: batches, and pages of keys and values.
namespace lockstep::kernels {

// Sequences whose tokens [begin, end) are in the batch; pages lie anywhere.
class Batch {
 public:
  struct Range {
    int begin;
    int end;
  };

  Batch(const std::vector<Range>& ranges, int page_size, std::mt19937& random) {
    for (const Range& range : ranges) {
      for (int position = range.begin; position < range.end; ++position) {
        sequence_of_.push_back(tables_.size());
        positions_.push_back(position);
      }
      tables_.emplace_back((range.end + page_size - 1) / page_size);
      num_pages_ += tables_.back().size();
    }
    std::vector<int32_t> pages(num_pages_);
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), random);
    for (auto& table : tables_) {
      for (int32_t& page : table) {
        page = pages.back();
        pages.pop_back();
      }
      pointers_.push_back(table.data());
    }
  }

  TokenBatch view() const {
    return {static_cast<int>(positions_.size()), positions_.data(),
            sequence_of_.data(), pointers_.data()};
  }
  int num_pages() const { return num_pages_; }
  int position(int token) const { return positions_[token]; }

 private:
  std::vector<int32_t> positions_, sequence_of_;
  std::vector<std::vector<int32_t>> tables_;
  std::vector<const int32_t*> pointers_;
  int num_pages_ = 0;
};

struct AttentionShape {
  int heads, kv_heads, head_dim, page_size;
  std::vector<Batch::Range> ranges;
  int window = 0;
  float soft_cap = 0;

  std::string name(KvType type) const {
    return std::string(KvTypeName(type)) + ", heads " + std::to_string(heads) +
           "/" + std::to_string(kv_heads) + ", head_dim " +
           std::to_string(head_dim) + ", page_size " +
           std::to_string(page_size) + ", window " + std::to_string(window) +
           ", soft cap " + std::to_string(soft_cap);
  }
};

// Pages for every position of a batch's sequences. What was not stored reads as
// NaN: all bits are set.
class Cache {
 public:
  Cache(KvType type, const AttentionShape& shape, int num_pages) {
    const size_t vectors =
        size_t{1} * num_pages * shape.kv_heads * shape.page_size;
    const size_t elements = vectors * shape.head_dim;
    keys_.assign(elements * KvElementBytes(type), 0xff);
    values_ = keys_;
    scales_.assign(2 * vectors, std::nanf(""));
    kv_ = {type,
           keys_.data(),
           values_.data(),
           scales_.data(),
           scales_.data() + vectors,
           shape.kv_heads,
           shape.page_size,
           shape.head_dim};
  }

  const PagedKv& kv() const { return kv_; }

  // As numbers, of a position of a sequence.
  double Key(const int32_t* pages, int position, int kv_head, int d) const {
    const int32_t page = pages[position / kv_.page_size];
    const int slot = position % kv_.page_size;
    return Scale(kv_.key_scales, page, kv_head, slot) *
           DecodeKv(kv_.type, kv_.keys,
                    kv_.KeyOffset(page, kv_head, slot) + d * kv_.page_size);
  }
  double Value(const int32_t* pages, int position, int kv_head, int d) const {
    const int32_t page = pages[position / kv_.page_size];
    const int slot = position % kv_.page_size;
    return Scale(kv_.value_scales, page, kv_head, slot) *
           DecodeKv(kv_.type, kv_.values, kv_.Offset(page, kv_head, slot) + d);
  }

  // Numbers of keys and values that are not NaN.
  int CountStored() const {
    const size_t bytes = KvElementBytes(kv_.type);
    const size_t elements = keys_.size() / bytes;
    int count = 0;
    for (size_t i = 0; i < elements; ++i) {
      const size_t vector = i / kv_.head_dim;
      const size_t block = i / (kv_.head_dim * kv_.page_size) * kv_.page_size;
      const bool scaled = kv_.type == KvType::kInt8;
      const float key_scale =
          scaled ? kv_.key_scales[block + i % kv_.page_size] : 1;
      const float value_scale = scaled ? kv_.value_scales[vector] : 1;
      count += !std::isnan(DecodeKv(kv_.type, kv_.keys, i) * key_scale);
      count += !std::isnan(DecodeKv(kv_.type, kv_.values, i) * value_scale);
    }
    return count;
  }

  bool operator==(const Cache& other) const {
    return keys_ == other.keys_ && values_ == other.values_ &&
           std::memcmp(scales_.data(), other.scales_.data(),
                       scales_.size() * sizeof(float)) == 0;
  }

 private:
  double Scale(const float* scales, int32_t page, int kv_head, int slot) const {
    if (kv_.type != KvType::kInt8) return 1;
    return scales[kv_.ScaleOffset(page, kv_head, slot)];
  }

  std::vector<uint8_t> keys_, values_;
  std::vector<float> scales_;
  PagedKv kv_;
};

// GQA of every kind, vectors of odd lengths, pages from 1 slot to more than a
// sequence, prompts beside single tokens, positions around blocks.
inline std::vector<AttentionShape> AwkwardAttentionShapes() {
  return {
      {1, 1, 8, 1, {{0, 1}}},
      {1, 1, 1, 4, {{0, 5}}},
      {3, 1, 64, 16, {{0, 130}, {63, 64}, {64, 65}, {200, 201}}},
      {9, 3, 64, 16, {{0, 33}, {127, 129}, {1, 2}}},
      {4, 2, 33, 16, {{0, 70}, {5, 6}}},
      {4, 2, 33, 64, {{60, 70}}},
      {4, 4, 80, 8, {{60, 70}, {0, 17}}},
      {5, 2, 48, 64, {{0, 9}, {70, 75}}},
      {8, 1, 128, 32, {{0, 20}, {100, 140}}},
      {70, 1, 16, 2, {{0, 18}}},
      {2, 1, 512, 256, {{0, 3}, {300, 302}}},
  };
}

// `out` [head_dim] of a token and head against double precision.
//
// With u = 2^-24: a score errs by a rounding of u for each dimension of
// Σ|q·k|, its weight by as much relatively, and by u times the distance to
// the maximum; rescaling adds 4u a block; weighted values are added in a
// chain as long as the positions. Roundings are as good as independent, so n
// of them are allowed 4·√n instead of n. `rounding` is that of `out` itself,
// relative.
inline void ExpectAttentionRight(const AttentionShape& shape,
                                 const TokenBatch& batch, const Cache& cache,
                                 const float* q, float scale, int token,
                                 int head, const float* out,
                                 double rounding = 0) {
  const int dim = shape.head_dim;
  const int kv_head = head * shape.kv_heads / shape.heads;
  const int positions = batch.positions[token] + 1;
  const int first = shape.window == 0 ? 0 : positions - shape.window;
  const int32_t* pages = batch.page_tables[batch.sequence_of[token]];
  std::vector<double> sum(dim), magnitude(dim);
  double total = 0, largest = 0;
  for (int p = std::max(first, 0); p < positions; ++p) {
    double score = 0, score_magnitude = 0;
    for (int d = 0; d < dim; ++d) {
      const double term = scale * q[d] * cache.Key(pages, p, kv_head, d);
      score += term;
      score_magnitude += std::abs(term);
    }
    if (shape.soft_cap > 0) {
      score = shape.soft_cap * std::tanh(score / shape.soft_cap);
    }
    largest = std::max(largest, score_magnitude);
    const double weight = std::exp(score);
    total += weight;
    for (int d = 0; d < dim; ++d) {
      const double value = weight * cache.Value(pages, p, kv_head, d);
      sum[d] += value;
      magnitude[d] += std::abs(value);
    }
  }
  const double roundings = largest * (4 * std::sqrt(dim) + 4) +
                           4 * std::sqrt(positions) + positions / 16.0 + 16;
  for (int d = 0; d < dim; ++d) {
    const double bound = 0x1p-24 * 2 * roundings * magnitude[d] / total;
    const double right = sum[d] / total;
    ASSERT_NEAR(out[d], right, bound + rounding * std::abs(right))
        << "token " << token << " head " << head << " d " << d;
  }
}

}  // namespace lockstep::kernels
