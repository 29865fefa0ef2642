// Norm, rotation and the way to the pages, against the operations of kernels/
// one after the other.
#include "kernels/cuda/rotary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/attention_conformance.h"
#include "kernels/cuda/kernel_run.h"
#include "kernels/cuda/paged_fixture.h"
#include "kernels/ops_conformance.h"

namespace lockstep::cuda {
namespace {

using kernels::AttentionShape;
using kernels::RopeStyle;

constexpr float kEps = 1e-6f;
constexpr int kPositions = 80;

struct Case {
  AttentionShape shape;
  int rotary_dim;
  RopeStyle style;
  bool norms;
};

// Queries, keys and values of a token each, in a row.
struct Row {
  explicit Row(const AttentionShape& shape)
      : keys(shape.heads * shape.head_dim),
        values(keys + shape.kv_heads * shape.head_dim),
        size(values + shape.kv_heads * shape.head_dim + 2) {}

  int keys, values, size;
};

struct Tables {
  explicit Tables(int half) : cos(kPositions * half), sin(kPositions * half) {
    for (int p = 0; p < kPositions; ++p) {
      for (int i = 0; i < half; ++i) {
        const double angle = p * std::pow(10000, -double(i) / half);
        cos[p * half + i] = std::cos(angle);
        sin[p * half + i] = std::sin(angle);
      }
    }
  }

  std::vector<float> cos, sin;
};

template <typename T>
class RotaryTest : public testing::Test {
 protected:
  RotaryTest() : random_(kernels::kSeed) {
    RecordProperty("seed", kernels::kSeed);
  }

  void ExpectNear(const T* y, const float* expected, int count) {
    // A rotation may cancel most of a value.
    const float largest = std::abs(*std::max_element(
        expected, expected + count,
        [](float a, float b) { return std::abs(a) < std::abs(b); }));
    for (int i = 0; i < count; ++i) {
      ASSERT_NEAR(AsFloat(y[i]), expected[i],
                  std::abs(expected[i]) * Rounding<T>() + largest * 1e-6)
          << i;
    }
  }

  void ExpectAsOneAfterTheOther(const Case& c) {
    const AttentionShape& shape = c.shape;
    const Row row(shape);
    const int dim = shape.head_dim;
    const kernels::Batch batch(shape.ranges, shape.page_size, random_);
    const kernels::TokenBatch view = batch.view();
    const FlatBatch flat(shape, view);
    const Tables tables(c.rotary_dim / 2);
    const auto q_norm = RandomValues<float>(dim, random_);
    const auto k_norm = RandomValues<float>(dim, random_);
    const auto qkv = RandomValues<T>(view.num_tokens * row.size, random_);

    // The rows, all keys, all values.
    const size_t page_elements =
        size_t{1} * batch.num_pages() * shape.kv_heads * shape.page_size * dim;
    std::vector<T> all(qkv.size() + 2 * page_elements);
    std::memset(all.data(), 0xff, all.size() * sizeof(T));
    std::copy(qkv.begin(), qkv.end(), all.begin());
    const auto pages_in = [&](T* memory) -> PagedKv<T> {
      T* const keys = memory + qkv.size();
      return {keys, keys + page_elements, shape.kv_heads, shape.page_size, dim};
    };
    all = SameInEveryOrder(all, [&](T* out) {
      return RotateAndStoreKv<T>(
          {out, row.size, shape.heads, c.norms ? q_norm.data() : nullptr,
           c.norms ? k_norm.data() : nullptr, kEps, c.style, c.rotary_dim,
           tables.cos.data(), tables.sin.data()},
          flat.view(), pages_in(out), nullptr);
    });

    std::vector<float> rotated = Floats(qkv);
    const auto rotate = [&](int at, int heads, const std::vector<float>& norm) {
      reference_.ops->NormRope(&rotated[at], row.size, heads, dim,
                               c.norms ? norm.data() : nullptr, kEps, c.style,
                               c.rotary_dim, tables.cos.data(),
                               tables.sin.data(), view);
    };
    rotate(0, shape.heads, q_norm);
    rotate(row.keys, shape.kv_heads, k_norm);
    const PagedKv<T> pages = pages_in(all.data());
    for (int token = 0; token < view.num_tokens; ++token) {
      const int at = token * row.size;
      ExpectNear(&all[at], &rotated[at], row.keys);
      const int32_t* table = view.page_tables[view.sequence_of[token]];
      for (int head = 0; head < shape.kv_heads; ++head) {
        const size_t offset = pages.Offset(table, batch.position(token), head);
        ExpectNear(pages.keys + offset, &rotated[at + row.keys + head * dim],
                   dim);
        for (int d = 0; d < dim; ++d) {
          EXPECT_EQ(AsFloat(pages.values[offset + d]),
                    AsFloat(qkv[at + row.values + head * dim + d]));
        }
      }
    }
    const std::vector<float> stored = Floats(all);
    EXPECT_EQ(std::count_if(stored.begin() + qkv.size(), stored.end(),
                            [](float x) { return !std::isnan(x); }),
              2 * view.num_tokens * shape.kv_heads * dim);
  }

  std::mt19937 random_;
  kernels::Backend reference_ = kernels::MakeBackend("reference", 1);
};

using Types = testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(RotaryTest, Types);

TYPED_TEST(RotaryTest, IsNormRotationAndStoreOneAfterTheOther) {
  const std::vector<kernels::Batch::Range> ranges = {
      {0, 3}, {70, 71}, {14, 30}};
  for (const Case& c :
       {Case{{1, 1, 2, 16, ranges}, 2, RopeStyle::kHalves, false},
        Case{{3, 1, 64, 16, ranges}, 64, RopeStyle::kHalves, true},
        Case{{3, 3, 64, 1, ranges}, 64, RopeStyle::kNeighbours, false},
        Case{{4, 2, 80, 8, ranges}, 20, RopeStyle::kHalves, true},
        Case{{14, 2, 128, 16, ranges}, 128, RopeStyle::kHalves, false},
        Case{{2, 1, 33, 64, ranges}, 32, RopeStyle::kNeighbours, true}}) {
    SCOPED_TRACE(c.shape.name(kernels::KvType::kF32));
    this->ExpectAsOneAfterTheOther(c);
  }
}

TYPED_TEST(RotaryTest, RefusesToRotateMoreThanAHead) {
  RotaryArgs<TypeParam> args = {};
  args.rotary_dim = 66;
  EXPECT_EQ(RotateAndStoreKv<TypeParam>(args, {}, {nullptr, nullptr, 1, 16, 64},
                                        nullptr),
            kCudaInvalidValue);
}

}  // namespace
}  // namespace lockstep::cuda
