// Attention and what is by position, on every instruction set this processor
// has: the same bits as the reference, whatever else is in the batch; and the
// reference is right, by double precision.
#include "kernels/attention_conformance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/attention/attend_args.h"
#include "kernels/attention/kv_type.h"
#include "kernels/attention/token_batch.h"
#include "kernels/ops.h"
#include "kernels/ops_conformance.h"

namespace lockstep::kernels {
namespace {

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

class AttentionConformanceTest : public OpsConformanceTest {
 protected:
  static std::vector<int32_t> GroupedHeads(const AttentionShape& shape) {
    std::vector<int32_t> kv_head_of(shape.heads);
    for (int head = 0; head < shape.heads; ++head) {
      kv_head_of[head] = head * shape.kv_heads / shape.heads;
    }
    return kv_head_of;
  }

  // Random keys and values for each sequence, up to its last position.
  void Fill(const AttentionShape& shape, const TokenBatch& batch,
            const Cache& cache) {
    constexpr int32_t kOnlySequence = 0;
    const int row = shape.kv_heads * shape.head_dim;
    for (size_t s = 0; s < shape.ranges.size(); ++s) {
      for (int p = 0; p < shape.ranges[s].end; ++p) {
        const TokenBatch token = {1, &p, &kOnlySequence, batch.page_tables + s};
        const std::vector<float> k = Normal(row), v = Normal(row);
        reference_.ops->StoreKv(k.data(), row, v.data(), row, token,
                                cache.kv());
      }
    }
  }

  // Half a unit in the last place.
  static double StoredError(KvType type, const float* x, int count, int d) {
    float largest = 0;
    for (int i = 0; i < count; ++i) largest = std::max(largest, std::abs(x[i]));
    switch (type) {
      case KvType::kF32:
        return 0;
      case KvType::kF16:
        return std::max(std::abs(x[d]) * 0x1p-10 / 2, 0x1p-25);
      case KvType::kBF16:
        return std::abs(x[d]) * 0x1p-7 / 2;
      case KvType::kInt8:
        return largest / 127 / 2 * (1 + 0x1p-14);
    }
    return 0;
  }

  void ExpectSameBitsAndRight(KvType type, const AttentionShape& shape) {
    SCOPED_TRACE(shape.name(type));
    const Batch batch(shape.ranges, shape.page_size, random_);
    const TokenBatch view = batch.view();
    const Cache cache(type, shape, batch.num_pages());
    Fill(shape, view, cache);
    const int row = shape.heads * shape.head_dim;
    const std::vector<float> q = Normal(view.num_tokens * row, 2);
    const std::vector<int32_t> kv_head_of = GroupedHeads(shape);
    const float scale = 1 / std::sqrt(static_cast<float>(shape.head_dim));
    const std::vector<float> out = ExpectSameBits(
        view.num_tokens * row, "attention", [&](Ops& ops, float* y) {
          ops.Attention(q.data(), row, shape.heads, kv_head_of.data(),
                        {scale, shape.soft_cap, shape.window}, view, cache.kv(),
                        y, row);
        });
    for (int token = 0; token < view.num_tokens; token += 3) {
      for (int head = 0; head < shape.heads; ++head) {
        const int at = token * row + head * shape.head_dim;
        ExpectAttentionRight(shape, view, cache, &q[at], scale, token, head,
                             &out[at]);
      }
    }
  }
};

TEST_F(AttentionConformanceTest, SameBitsAndRight) {
  for (const AttentionShape& shape : AwkwardAttentionShapes()) {
    for (KvType type : kKvTypes) ExpectSameBitsAndRight(type, shape);
  }
}

// Single tokens are so few that they are split among threads; the run of them
// is not.
TEST_F(AttentionConformanceTest, SameBitsAndRightWhereChunksMeet) {
  const int end = 2 * kAttendChunk;
  for (KvType type : kKvTypes) {
    for (int position : {kAttendChunk - 2, kAttendChunk - 1, kAttendChunk,
                         end - 2, end - 1, end, end + 70}) {
      ExpectSameBitsAndRight(type, {3, 1, 16, 16, {{position, position + 1}}});
    }
    ExpectSameBitsAndRight(type, {2, 1, 32, 16, {{end - 20, end + 20}}});
    ExpectSameBitsAndRight(type, {3, 1, 20, 2, {{end, end + 1}}});
    ExpectSameBitsAndRight(type,
                           {4, 2, 16, 256, {{end, end + 1}, {0, 2}, {3, 4}}});
  }
}

// A window that begins where blocks and chunks do, before and after, so that
// rows of a tile see different ones of them, some none of a block or chunk.
TEST_F(AttentionConformanceTest, SameBitsAndRightThroughAWindow) {
  const int block = kAttendBlock, chunk = kAttendChunk, end = 2 * chunk;
  for (KvType type : kKvTypes) {
    for (int window : {1, 17, block - 1, block, block + 1}) {
      ExpectSameBitsAndRight(
          type, {3, 1, 16, 16, {{60, 150}, {0, 1}, {200, 203}}, window});
      ExpectSameBitsAndRight(type, {4, 2, 33, 4, {{120, 140}}, window});
    }
    for (int window : {8, chunk - 8, chunk + 8, end + 8}) {
      ExpectSameBitsAndRight(type,
                             {2, 1, 16, 16, {{end - 8, end + 8}}, window});
      const int position = end + window - 1;
      ExpectSameBitsAndRight(
          type, {3, 1, 16, 16, {{position, position + 1}}, window});
    }
  }
}

// A cap that most scores come near, and one that few do.
TEST_F(AttentionConformanceTest, SameBitsAndRightWithASoftCap) {
  for (KvType type : kKvTypes) {
    for (float cap : {0.5f, 50.0f}) {
      ExpectSameBitsAndRight(
          type, {3, 1, 16, 16, {{60, 150}, {0, 1}, {200, 203}}, 0, cap});
      ExpectSameBitsAndRight(type, {4, 2, 33, 4, {{120, 140}}, 65, cap});
    }
  }
}

TEST_F(AttentionConformanceTest, DoesNotDependOnTheRestOfTheBatch) {
  struct Case {
    AttentionShape shape;
    KvType type;
  };
  const int border = kAttendChunk;
  std::vector<Case> cases = {{{9, 3, 64, 16, {{0, 150}}}, KvType::kF32}};
  for (KvType type : kKvTypes) {
    for (int window : {0, 1, 20, 64, border - 10, border + 10}) {
      cases.push_back(
          {{3, 1, 16, 16, {{border - 30, border + 40}}, window}, type});
    }
  }
  for (const auto& [shape, type] : cases) {
    const Batch prompt(shape.ranges, shape.page_size, random_);
    const TokenBatch view = prompt.view();
    const Cache cache(type, shape, prompt.num_pages());
    Fill(shape, view, cache);
    const int row = shape.heads * shape.head_dim;
    const std::vector<float> q = Normal(view.num_tokens * row, 2);
    const std::vector<int32_t> kv_head_of = GroupedHeads(shape);
    for (const Backend& backend : backends_) {
      std::vector<float> together(view.num_tokens * row);
      std::vector<float> alone(together.size());
      const auto attend = [&](const TokenBatch& batch, int token, float* out) {
        backend.ops->Attention(&q[token * row], row, shape.heads,
                               kv_head_of.data(), {0.125f, 0, shape.window},
                               batch, cache.kv(), out + token * row, row);
      };
      attend(view, 0, together.data());
      for (int token = 0, chunk; token < view.num_tokens; token += chunk) {
        chunk = std::min(1 + token % 7, view.num_tokens - token);
        const TokenBatch part = {chunk, view.positions + token,
                                 view.sequence_of + token, view.page_tables};
        attend(part, token, alone.data());
      }
      EXPECT_EQ(FirstDifference(together, alone), -1)
          << shape.name(type) << ": " << backend.name;
    }
  }
}

TEST_F(AttentionConformanceTest, StoreKvWritesEachTokensSlotAndNoOther) {
  for (KvType type : kKvTypes) {
    for (int page_size : {1, 4, 16, 256}) {
      const AttentionShape shape = {
          4, 2, 23, page_size, {{0, 9}, {3, 5}, {11, 12}}};
      SCOPED_TRACE(shape.name(type));
      const Batch batch(shape.ranges, shape.page_size, random_);
      const TokenBatch view = batch.view();
      const int row = shape.kv_heads * shape.head_dim;
      const std::vector<float> k = Normal(view.num_tokens * row);
      const std::vector<float> v = Normal(view.num_tokens * row);
      const Cache cache(type, shape, batch.num_pages());
      reference_.ops->StoreKv(k.data(), row, v.data(), row, view, cache.kv());
      for (const Backend& backend : backends_) {
        const Cache other(type, shape, batch.num_pages());
        backend.ops->StoreKv(k.data(), row, v.data(), row, view, other.kv());
        EXPECT_TRUE(cache == other) << backend.name;
      }
      for (int token = 0; token < view.num_tokens; ++token) {
        const int32_t* pages = view.page_tables[view.sequence_of[token]];
        for (int head = 0; head < shape.kv_heads; ++head) {
          const int at = token * row + head * shape.head_dim;
          for (int d = 0; d < shape.head_dim; ++d) {
            const int position = view.positions[token];
            EXPECT_NEAR(cache.Key(pages, position, head, d), k[at + d],
                        StoredError(type, &k[at], shape.head_dim, d));
            EXPECT_NEAR(cache.Value(pages, position, head, d), v[at + d],
                        StoredError(type, &v[at], shape.head_dim, d));
          }
        }
      }
      EXPECT_EQ(cache.CountStored(), 2 * view.num_tokens * row);
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
