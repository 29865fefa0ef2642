// Paged attention on the emulation: right by double precision over the shapes
// of kernels/, and the same bits however it is cut.
#include "kernels/cuda/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "kernels/attention_conformance.h"
#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/kernel_run.h"
#include "kernels/cuda/paged_fixture.h"
#include "kernels/ops_conformance.h"

namespace lockstep::cuda {
namespace {

using kernels::AttentionShape;

constexpr int kMany = 1000;

// A batch over random keys and values, ready to attend.
template <typename T>
class Case {
 public:
  Case(const AttentionShape& shape, std::mt19937& random)
      : shape_(shape),
        batch_(shape.ranges, shape.page_size, random),
        flat_(shape, batch_.view()),
        cache_(kernels::KvType::kF32, shape, batch_.num_pages()),
        pages_(shape, batch_.num_pages()),
        q_(RandomValues<T>(size(), random, 2)) {
    const kernels::Backend reference = kernels::MakeBackend("reference", 1);
    pages_.Fill(batch_.view(), cache_, reference.ops.get(), random);
  }

  int num_tokens() const { return batch_.view().num_tokens; }
  size_t size() const { return size_t{1} * num_tokens() * row(); }

  // Of `count` tokens from `first` on, into their rows of `out`.
  CudaError Run(int first, int count, int max_partials, T* out) {
    const PagedBatch batch = flat_.view(first, count);
    const AttentionPlan plan =
        PlanAttention({count, batch.positions, batch.sequence_of,
                       shape_.heads / shape_.kv_heads, shape_.window},
                      max_partials);
    std::vector<float> partials(size_t{1} * plan.num_partials * shape_.heads *
                                    (shape_.head_dim + kPartialExtra),
                                std::nanf(""));
    // Before the plan and the partials go.
    return Completed(
        Attend<T>({&q_[first * row()], row(), shape_.heads, scale(),
                   shape_.window, shape_.soft_cap, out + first * row(), row()},
                  batch, pages_.kv(),
                  {plan.tiles.data(), static_cast<int>(plan.tiles.size()),
                   plan.merges.data(), static_cast<int>(plan.merges.size()),
                   partials.data()},
                  nullptr));
  }

  std::vector<T> Result(int max_partials) {
    return SameInEveryOrder(std::vector<T>(size()), [&](T* out) {
      return Run(0, num_tokens(), max_partials, out);
    });
  }

  void ExpectRight(const std::vector<T>& out) const {
    const std::vector<float> q = Floats(q_), results = Floats(out);
    for (int token = 0; token < num_tokens(); token += 3) {
      for (int head = 0; head < shape_.heads; ++head) {
        const int at = token * row() + head * shape_.head_dim;
        kernels::ExpectAttentionRight(shape_, batch_.view(), cache_, &q[at],
                                      scale(), token, head, &results[at],
                                      Rounding<T>());
      }
    }
  }

 private:
  int row() const { return shape_.heads * shape_.head_dim; }
  float scale() const {
    return 1 / std::sqrt(static_cast<float>(shape_.head_dim));
  }

  const AttentionShape shape_;
  const kernels::Batch batch_;
  const FlatBatch flat_;
  const kernels::Cache cache_;
  Pages<T> pages_;
  const std::vector<T> q_;
};

template <typename T>
class AttentionTest : public testing::Test {
 protected:
  AttentionTest() : random_(kernels::kSeed) {
    RecordProperty("seed", kernels::kSeed);
  }

  void ExpectRight(const AttentionShape& shape) {
    SCOPED_TRACE(shape.name(kernels::KvType::kF32));
    Case<T> attention(shape, random_);
    attention.ExpectRight(attention.Result(kMany));
  }

  std::mt19937 random_;
};

using Types = testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(AttentionTest, Types);

TYPED_TEST(AttentionTest, IsRightForAwkwardShapes) {
  for (const AttentionShape& shape : kernels::AwkwardAttentionShapes()) {
    if (shape.head_dim > kMaxHeadDim || shape.heads % shape.kv_heads != 0) {
      Case<TypeParam> refused(shape, this->random_);
      std::vector<TypeParam> out(refused.size());
      EXPECT_EQ(refused.Run(0, 1, kMany, out.data()), kCudaInvalidValue);
      continue;
    }
    this->ExpectRight(shape);
  }
}

// Those of models, and group sizes of theirs: 1, 2, 5, 7.
TYPED_TEST(AttentionTest, IsRightForTheHeadsOfModels) {
  for (int head_dim : {64, 96, 128, 256}) {
    for (auto [heads, kv_heads] : {std::pair{2, 2}, std::pair{4, 2},
                                   std::pair{5, 1}, std::pair{14, 2}}) {
      this->ExpectRight({heads, kv_heads, head_dim, 16, {{30, 33}, {64, 65}}});
    }
  }
}

TYPED_TEST(AttentionTest, IsRightWhereChunksMeet) {
  const int chunk = kAttentionChunk;
  this->ExpectRight({3, 1, 64, 16, {{chunk - 3, chunk + 3}}});
  for (int position : {chunk - 1, chunk, 2 * chunk}) {
    this->ExpectRight({2, 1, 64, 16, {{position, position + 1}, {3, 4}}});
  }
}

TYPED_TEST(AttentionTest, IsRightThroughAWindow) {
  const int chunk = kAttentionChunk;
  for (int window : {1, 17, 31, 32, 33}) {
    this->ExpectRight({3, 1, 32, 16, {{60, 110}, {0, 1}, {200, 203}}, window});
  }
  for (int window : {8, chunk - 4, chunk + 4}) {
    this->ExpectRight({2, 1, 16, 16, {{2 * chunk - 4, 2 * chunk + 4}}, window});
    this->ExpectRight({2, 1, 16, 16, {{2 * chunk, 2 * chunk + 1}}, window});
  }
}

TYPED_TEST(AttentionTest, IsRightWithSoftCaps) {
  for (float cap : {0.5f, 5.0f, 50.0f}) {
    this->ExpectRight({3, 1, 64, 16, {{30, 33}, {64, 65}}, /*window=*/0, cap});
    this->ExpectRight({4, 2, 33, 16, {{60, 75}}, /*window=*/20, cap});
  }
}

TYPED_TEST(AttentionTest, ChunksOfBlocksOfTheirOwnGiveTheSameBits) {
  const int chunk = kAttentionChunk;
  for (int window : {0, chunk + 30}) {
    Case<TypeParam> attention(
        {4, 2, 64, 16, {{2 * chunk + 5, 2 * chunk + 7}, {700, 701}}, window},
        this->random_);
    const auto whole = attention.Result(/*max_partials=*/0);
    EXPECT_TRUE(SameBits(attention.Result(kMany), whole));
    EXPECT_TRUE(SameBits(attention.Result(/*max_partials=*/3), whole));
  }
}

TYPED_TEST(AttentionTest, DoesNotDependOnTheRestOfTheBatch) {
  const int chunk = kAttentionChunk;
  for (int window : {0, 1, 20, chunk - 10}) {
    Case<TypeParam> attention(
        {3, 1, 16, 16, {{chunk - 15, chunk + 20}, {5, 9}}, window},
        this->random_);
    const auto together = attention.Result(kMany);
    std::vector<TypeParam> parts(attention.size());
    for (int token = 0, count; token < attention.num_tokens(); token += count) {
      count = std::min(1 + token % 7, attention.num_tokens() - token);
      ASSERT_EQ(attention.Run(token, count, kMany, parts.data()), kCudaSuccess);
    }
    EXPECT_TRUE(SameBits(parts, together)) << "window " << window;
  }
}

TYPED_TEST(AttentionTest, NeedsItsBarriers) {
  Case<TypeParam> attention({4, 2, 64, 16, {{40, 110}}}, this->random_);
  ExpectNeedsEachBarrier(
      3, std::vector<TypeParam>(attention.size()), [&](TypeParam* out) {
        return attention.Run(0, attention.num_tokens(), kMany, out);
      });
}

}  // namespace
}  // namespace lockstep::cuda
