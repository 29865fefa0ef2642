// Attention and what is by position, on every instruction set this processor
// has: the same bits as the reference, whatever else is in the batch; and the
// reference is right, by double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "kernels/ops_conformance.h"
#include "kernels/paged_kv.h"
#include "kernels/token_batch.h"

namespace lockstep::kernels {
namespace {

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

TEST_F(OpsConformanceTest, NormRope) {
  const Batch batch({{0, 3}, {70, 71}, {14, 40}}, 16, random_);
  const int tokens = batch.view().num_tokens;
  struct Case {
    int heads, head_dim, rotary_dim;
    RopeStyle style;
    bool norm;
  };
  for (const Case& c : {Case{1, 2, 2, RopeStyle::kHalves, false},
                        Case{3, 64, 64, RopeStyle::kHalves, true},
                        Case{3, 64, 64, RopeStyle::kNeighbours, false},
                        Case{2, 80, 20, RopeStyle::kHalves, true},
                        Case{2, 33, 32, RopeStyle::kNeighbours, true}}) {
    const int stride = c.heads * c.head_dim + 2, half = c.rotary_dim / 2;
    const std::vector<float> x = Normal(tokens * stride);
    const std::vector<float> weight = Normal(c.head_dim);
    std::vector<float> cos(80 * half), sin(80 * half);
    for (int p = 0; p < 80; ++p) {
      for (int i = 0; i < half; ++i) {
        const double angle = p * std::pow(10000, -double(i) / half);
        cos[p * half + i] = std::cos(angle);
        sin[p * half + i] = std::sin(angle);
      }
    }
    const std::vector<float> y =
        ExpectSameBits(tokens * stride, "rope", [&](Ops& ops, float* out) {
          std::copy(x.begin(), x.end(), out);
          ops.NormRope(out, stride, c.heads, c.head_dim,
                       c.norm ? weight.data() : nullptr, 1e-6f, c.style,
                       c.rotary_dim, cos.data(), sin.data(), batch.view());
        });
    if (c.norm) continue;
    // A rotation by the position's angle, pair by pair.
    const bool halves = c.style == RopeStyle::kHalves;
    for (int token = 0; token < tokens; ++token) {
      for (int i = 0; i < half; ++i) {
        const int a = token * stride + (halves ? i : 2 * i);
        const int b = a + (halves ? half : 1);
        const double angle =
            batch.position(token) * std::pow(10000, -double(i) / half);
        EXPECT_NEAR(y[a], x[a] * std::cos(angle) - x[b] * std::sin(angle),
                    2e-6);
        EXPECT_NEAR(y[b], x[b] * std::cos(angle) + x[a] * std::sin(angle),
                    2e-6);
      }
    }
  }
}

constexpr int32_t kOnlySequence = 0;

struct AttentionShape {
  int heads, kv_heads, head_dim, page_size;
  std::vector<Batch::Range> ranges;
};

class AttentionConformanceTest : public OpsConformanceTest {
 protected:
  // A cache with every position of the batch's sequences.
  struct Cache {
    Cache(const AttentionShape& shape, const Batch& batch)
        : keys(size_t{1} * batch.num_pages() * shape.kv_heads *
               shape.page_size * shape.head_dim),
          values(keys.size()),
          kv{keys.data(), values.data(), shape.kv_heads, shape.page_size,
             shape.head_dim} {}
    std::vector<float> keys, values;
    PagedKv kv;
  };

  static std::vector<int32_t> GroupedHeads(const AttentionShape& shape) {
    std::vector<int32_t> kv_head_of(shape.heads);
    for (int head = 0; head < shape.heads; ++head) {
      kv_head_of[head] = head * shape.kv_heads / shape.heads;
    }
    return kv_head_of;
  }

  static double ExactDifference(const AttentionShape& shape,
                                const TokenBatch& batch, const PagedKv& kv,
                                const std::vector<float>& q, float scale,
                                const std::vector<float>& out, int token,
                                int head) {
    const int dim = shape.head_dim;
    const size_t row = (size_t{1} * token * shape.heads + head) * dim;
    std::vector<double> sum(dim);
    double total = 0;
    for (int p = 0; p <= batch.positions[token]; ++p) {
      const int32_t page =
          batch.page_tables[batch.sequence_of[token]][p / kv.page_size];
      const int kv_head = head * shape.kv_heads / shape.heads;
      const int slot = p % kv.page_size;
      const float* key = kv.keys + kv.KeyOffset(page, kv_head, slot);
      const float* value = kv.values + kv.Offset(page, kv_head, slot);
      double score = 0;
      for (int d = 0; d < dim; ++d) {
        score += double{q[row + d]} * key[d * kv.page_size];
      }
      const double weight = std::exp(score * scale);
      total += weight;
      for (int d = 0; d < dim; ++d) sum[d] += weight * value[d];
    }
    double worst = 0;
    for (int d = 0; d < dim; ++d) {
      worst = std::max(worst, std::abs(sum[d] / total - out[row + d]));
    }
    return worst;
  }
};

const std::vector<AttentionShape>& AttentionShapes() {
  static const auto* shapes = new std::vector<AttentionShape>{
      {1, 1, 8, 1, {{0, 1}}},
      {1, 1, 1, 4, {{0, 5}}},
      {3, 1, 64, 16, {{0, 130}, {63, 64}, {64, 65}, {200, 201}}},
      {9, 3, 64, 16, {{0, 33}, {127, 129}, {1, 2}}},
      {4, 2, 33, 16, {{0, 70}, {5, 6}}},
      {4, 4, 80, 8, {{60, 70}, {0, 17}}},
      {8, 1, 128, 32, {{0, 20}, {100, 140}}},
      {70, 1, 16, 2, {{0, 18}}},
      {2, 1, 512, 256, {{0, 3}, {300, 302}}},
  };
  return *shapes;
}

TEST_F(AttentionConformanceTest, SameBitsAndRight) {
  for (const AttentionShape& shape : AttentionShapes()) {
    const Batch batch(shape.ranges, shape.page_size, random_);
    Cache cache(shape, batch);
    // What no token of the batch may see is NaN.
    std::fill(cache.keys.begin(), cache.keys.end(), std::nanf(""));
    std::fill(cache.values.begin(), cache.values.end(), std::nanf(""));
    const TokenBatch view = batch.view();
    for (size_t s = 0; s < shape.ranges.size(); ++s) {
      for (int p = 0; p < shape.ranges[s].end; ++p) {
        const TokenBatch token = {1, &p, &kOnlySequence, view.page_tables + s};
        const int kv_row = shape.kv_heads * shape.head_dim;
        const std::vector<float> k = Normal(kv_row), v = Normal(kv_row);
        reference_.ops->StoreKv(k.data(), kv_row, v.data(), kv_row, token,
                                cache.kv);
      }
    }
    const int row = shape.heads * shape.head_dim;
    const std::vector<float> q = Normal(view.num_tokens * row, 2);
    const std::vector<int32_t> kv_head_of = GroupedHeads(shape);
    const float scale = 1 / std::sqrt(static_cast<float>(shape.head_dim));
    const std::vector<float> out = ExpectSameBits(
        view.num_tokens * row,
        "heads " + std::to_string(shape.heads) + " head_dim " +
            std::to_string(shape.head_dim),
        [&](Ops& ops, float* y) {
          ops.Attention(q.data(), row, shape.heads, kv_head_of.data(), scale,
                        view, cache.kv, y, row);
        });
    for (int token = 0; token < view.num_tokens; token += 3) {
      for (int head = 0; head < shape.heads; ++head) {
        EXPECT_LT(
            ExactDifference(shape, view, cache.kv, q, scale, out, token, head),
            2e-5);
      }
    }
  }
}

TEST_F(AttentionConformanceTest, DoesNotDependOnTheRestOfTheBatch) {
  const AttentionShape shape = {9, 3, 64, 16, {{0, 150}}};
  const Batch prompt(shape.ranges, shape.page_size, random_);
  Cache cache(shape, prompt);
  cache.keys = Normal(cache.keys.size());
  cache.values = Normal(cache.values.size());
  cache.kv.keys = cache.keys.data();
  cache.kv.values = cache.values.data();
  const int row = shape.heads * shape.head_dim;
  const TokenBatch view = prompt.view();
  const std::vector<float> q = Normal(view.num_tokens * row, 2);
  const std::vector<int32_t> kv_head_of = GroupedHeads(shape);
  for (const Backend& backend : backends_) {
    std::vector<float> together(view.num_tokens * row), alone(together.size());
    const auto attend = [&](const TokenBatch& batch, int token, float* out) {
      backend.ops->Attention(&q[token * row], row, shape.heads,
                             kv_head_of.data(), 0.125f, batch, cache.kv,
                             out + token * row, row);
    };
    attend(view, 0, together.data());
    for (int token = 0, chunk; token < view.num_tokens; token += chunk) {
      chunk = std::min(1 + token % 7, view.num_tokens - token);
      const TokenBatch part = {chunk, view.positions + token,
                               view.sequence_of + token, view.page_tables};
      attend(part, token, alone.data());
    }
    EXPECT_EQ(FirstDifference(together, alone), -1) << backend.name;
  }
}

TEST_F(AttentionConformanceTest, StoreKvWritesEachTokensSlotAndNoOther) {
  const AttentionShape shape = {4, 2, 24, 4, {{0, 9}, {3, 5}, {11, 12}}};
  const Batch batch(shape.ranges, shape.page_size, random_);
  const TokenBatch view = batch.view();
  const int row = shape.kv_heads * shape.head_dim;
  const std::vector<float> k = Normal(view.num_tokens * row);
  const std::vector<float> v = Normal(view.num_tokens * row);
  const std::vector<float> keys = ExpectSameBits(
      Cache(shape, batch).keys.size(), "keys", [&](Ops& ops, float* out) {
        Cache cache(shape, batch);
        cache.kv.keys = out;
        ops.StoreKv(k.data(), row, v.data(), row, view, cache.kv);
      });
  Cache cache(shape, batch);
  reference_.ops->StoreKv(k.data(), row, v.data(), row, view, cache.kv);
  for (int token = 0; token < view.num_tokens; ++token) {
    for (int head = 0; head < shape.kv_heads; ++head) {
      const int position = view.positions[token];
      const int32_t page =
          view.page_tables[view.sequence_of[token]][position / 4];
      const size_t key = cache.kv.KeyOffset(page, head, position % 4);
      const size_t value = cache.kv.Offset(page, head, position % 4);
      for (int d = 0; d < shape.head_dim; ++d) {
        const int source = token * row + head * shape.head_dim + d;
        EXPECT_EQ(keys[key + 4 * d], k[source]);
        EXPECT_EQ(cache.values[value + d], v[source]);
      }
    }
  }
  EXPECT_EQ(std::count_if(keys.begin(), keys.end(),
                          [](float x) { return !std::isnan(x); }),
            view.num_tokens * row);
}

}  // namespace
}  // namespace lockstep::kernels
