// The kernels that work row by row, against the operations of kernels/ and in
// every order of their threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cuda/activation.h"
#include "kernels/cuda/argmax.h"
#include "kernels/cuda/gather.h"
#include "kernels/cuda/kernel_run.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/test_device.h"
#include "kernels/ops_conformance.h"
#include "kernels/weights/dtype.h"
#include "kernels/weights/random_rows.h"

namespace lockstep::cuda {
namespace {

template <typename T>
class RowsTest : public testing::Test {
 protected:
  RowsTest() : random_(kernels::kSeed) {
    RecordProperty("seed", kernels::kSeed);
  }

  // Within the roundings of T and a few of fp32.
  static void ExpectNear(const std::vector<T>& y,
                         const std::vector<float>& expected) {
    ASSERT_EQ(y.size(), expected.size());
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_NEAR(AsFloat(y[i]), expected[i],
                  std::abs(expected[i]) * (Rounding<T>() + 2e-6) + 1e-30)
          << i;
    }
  }

  std::mt19937 random_;
  kernels::Backend reference_ = kernels::MakeBackend("reference", 1);
};

using Types = testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(RowsTest, Types);

TYPED_TEST(RowsTest, RmsNorm) {
  using T = TypeParam;
  for (int dim : kernels::kRowDims) {
    for (int rows : {1, 3}) {
      const auto x = RandomValues<T>(rows * dim, this->random_);
      const auto weight = RandomValues<float>(dim, this->random_);
      std::vector<float> expected(rows * dim);
      this->reference_.ops->RmsNorm(Floats(x).data(), dim, rows, dim,
                                    weight.data(), 1e-5f, expected.data(), dim);
      const std::vector<T> y =
          SameInEveryOrder(std::vector<T>(rows * dim), [&](T* out) {
            return RmsNorm<T, T>(
                {x.data(), weight.data(), 1e-5f, out, rows, dim}, nullptr);
          });
      this->ExpectNear(y, expected);
    }
  }
}

TYPED_TEST(RowsTest, AddRmsNormIsBothOneAfterTheOther) {
  using T = TypeParam;
  for (int dim : kernels::kRowDims) {
    const int rows = 2;
    const auto x = RandomValues<T>(rows * dim, this->random_);
    const auto residual = RandomValues<T>(rows * dim, this->random_);
    const auto weight = RandomValues<float>(dim, this->random_);
    // The sum in the first half, its norm in the second.
    std::vector<T> both = residual;
    both.resize(2 * rows * dim);
    both = SameInEveryOrder(both, [&](T* out) {
      return AddRmsNorm<T, T>(
          out, {x.data(), weight.data(), 1e-5f, out + rows * dim, rows, dim},
          nullptr);
    });
    const std::vector<T> sum(both.begin(), both.begin() + rows * dim);
    const std::vector<T> y(both.begin() + rows * dim, both.end());
    for (int i = 0; i < rows * dim; ++i) {
      const float exact = AsFloat(x[i]) + AsFloat(residual[i]);
      ASSERT_NEAR(AsFloat(sum[i]), exact, std::abs(exact) * Rounding<T>());
    }
    std::vector<float> expected(rows * dim);
    this->reference_.ops->RmsNorm(Floats(sum).data(), dim, rows, dim,
                                  weight.data(), 1e-5f, expected.data(), dim);
    this->ExpectNear(y, expected);
  }
}

TYPED_TEST(RowsTest, NormNeedsItsBarrier) {
  using T = TypeParam;
  const int dim = 700;
  const auto x = RandomValues<T>(dim, this->random_);
  const auto weight = RandomValues<float>(dim, this->random_);
  ExpectNeedsEachBarrier(1, std::vector<T>(dim), [&](T* out) {
    return RmsNorm<T, T>({x.data(), weight.data(), 1e-5f, out, 1, dim},
                         nullptr);
  });
}

TYPED_TEST(RowsTest, SiluMul) {
  using T = TypeParam;
  for (int dim : kernels::kRowDims) {
    const int rows = 5;
    auto gate_up = RandomValues<T>(rows * 2 * dim, this->random_, 20);
    std::vector<float> expected(rows * dim);
    this->reference_.ops->GatedMul(Floats(gate_up).data(), kernels::Gate::kSilu,
                                   2 * dim, rows, dim, expected.data(), dim);
    this->ExpectNear(SameInEveryOrder(std::vector<T>(rows * dim),
                                      [&](T* out) {
                                        return SiluMul<T>(gate_up.data(), rows,
                                                          dim, out, nullptr);
                                      }),
                     expected);
  }
}

TYPED_TEST(RowsTest, SiluMulTakesAddressesThatAreNotAligned) {
  using T = TypeParam;
  const int dim = 64;
  const auto gate_up = RandomValues<T>(2 * dim + 1, this->random_);
  std::vector<T> aligned(gate_up.begin() + 1, gate_up.end());
  std::vector<T> expected(dim), y(dim);
  ASSERT_EQ(SiluMul<T>(aligned.data(), 1, dim, expected.data(), nullptr), 0);
  ASSERT_EQ(SiluMul<T>(gate_up.data() + 1, 1, dim, y.data(), nullptr), 0);
  ASSERT_EQ(WaitForDevice(), 0);
  EXPECT_TRUE(SameBits(y, expected));
}

// From fp32, as the residual stream is kept, to T.
TYPED_TEST(RowsTest, NormsRoundOnceWhereTheyWriteAnotherType) {
  using T = TypeParam;
  const int rows = 2, dim = 300;
  const auto x = RandomValues<float>(rows * dim, this->random_);
  const auto weight = RandomValues<float>(dim, this->random_);
  std::vector<float> residual(rows * dim), expected(rows * dim);
  ASSERT_EQ(Completed(RmsNorm<float, float>(
                {x.data(), weight.data(), 1e-5f, expected.data(), rows, dim},
                nullptr)),
            kCudaSuccess);
  this->ExpectNear(
      SameInEveryOrder(std::vector<T>(rows * dim),
                       [&](T* out) {
                         std::fill(residual.begin(), residual.end(), 0.0f);
                         return AddRmsNorm<float, T>(
                             residual.data(),
                             {x.data(), weight.data(), 1e-5f, out, rows, dim},
                             nullptr);
                       }),
      expected);
}

TEST(EmbedTest, LeavesZerosForTheRowsOfOtherRanks) {
  using kernels::DType;
  std::mt19937 random(kernels::kSeed);
  for (DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0,
                     DType::kQ4_0, DType::kQ4_K}) {
    const int dim = kernels::BlockValues(type) == 1 ? 33 : 512;
    const size_t row_bytes = kernels::RowBytes(type, dim);
    auto table = kernels::RandomRows(type, 3, dim, random);
    if (kernels::IsPlain(type)) {
      const int bytes = kernels::BlockBytes(type);
      std::fill_n(table.begin(), bytes, 0);
      table[bytes - 1] = 0x80;  // -0
    }
    const EmbeddingShard shard = {{type, table.data(), 3, dim}, /*first=*/100};
    const std::vector<uint32_t> ids = {99, 102, 0, 100, 103, 0x7fffffff, 101};
    // Two of them where the device has chosen them.
    const std::vector<uint32_t> chosen = {103, 7, 102};
    std::vector<uint32_t> given = ids;
    given[1] = kIsChosen | 2;
    given[4] = kIsChosen | 0;
    const std::vector<float> y =
        SameInEveryOrder(std::vector<float>(ids.size() * dim), [&](float* out) {
          return Embed(shard, {given.data(), chosen.data()}, given.size(), out,
                       nullptr);
        });
    std::vector<float> row(dim);
    for (size_t i = 0; i < ids.size(); ++i) {
      std::fill(row.begin(), row.end(), 0.0f);
      if (ids[i] >= 100 && ids[i] < 103) {
        kernels::DecodeRow(type, &table[(ids[i] - 100) * row_bytes], dim,
                           row.data());
      }
      for (int d = 0; d < dim; ++d) {
        const float value = y[i * dim + d];
        ASSERT_EQ(value, row[d]) << kernels::DTypeName(type);
        ASSERT_FALSE(value == 0 && std::signbit(value));
      }
    }
  }
}

TEST(EmbedTest, RefusesWhatItCanNotDecode) {
  const uint32_t id = 0;
  float y[256];
  EXPECT_EQ(Embed({{kernels::DType::kQ6_K, nullptr, 1, 256}, 0}, {&id}, 1, y,
                  nullptr),
            kCudaInvalidValue);
}

TEST(JoinShardsTest, PutsTheShardsOfARowSideBySide) {
  std::mt19937 random(kernels::kSeed);
  const int shards = 3, rows = 2, cols = 131;
  const auto x = RandomValues<float>(shards * rows * cols, random);
  const std::vector<float> y =
      SameInEveryOrder(std::vector<float>(x.size()), [&](float* out) {
        return JoinShards(x.data(), shards, rows, cols, out, nullptr);
      });
  for (size_t i = 0; i < y.size(); ++i) {
    const int row = i / (shards * cols), shard = i / cols % shards;
    EXPECT_EQ(y[i], x[(shard * rows + row) * cols + i % cols]);
  }
}

TYPED_TEST(RowsTest, GatherRows) {
  using T = TypeParam;
  const int dim = 130;
  const auto x = RandomValues<T>(4 * dim, this->random_);
  const std::vector<int32_t> rows = {3, 0, 3};
  const std::vector<T> y =
      SameInEveryOrder(std::vector<T>(rows.size() * dim), [&](T* out) {
        return GatherRows<T>(x.data(), rows.data(), rows.size(), dim, out,
                             nullptr);
      });
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(AsFloat(y[i]), AsFloat(x[rows[i / dim] * dim + i % dim]));
  }
}

std::vector<uint32_t> ArgMaxOf(const std::vector<float>& logits, int rows,
                               int vocabulary) {
  const int stride = logits.size() / rows;
  return SameInEveryOrder(std::vector<uint32_t>(rows), [&](uint32_t* ids) {
    return ArgMax(logits.data(), stride, rows, vocabulary, ids, nullptr);
  });
}

TEST(ArgMaxTest, TakesTheLowestOfTheLargest) {
  std::mt19937 random(kernels::kSeed);
  for (int vocabulary : {1, 2, 31, 511, 512, 513, 5000}) {
    auto logits = RandomValues<float>(3 * (vocabulary + 1), random);
    std::vector<uint32_t> expected;
    for (int row = 0; row < 3; ++row) {
      float* of_row = &logits[row * (vocabulary + 1)];
      of_row[vocabulary] = 1000;  // not in the vocabulary
      const int least = random() % vocabulary;
      for (int i = 0; i < 5; ++i) {
        of_row[least + random() % (vocabulary - least)] = 100;
      }
      of_row[least] = 100;
      expected.push_back(least);
    }
    EXPECT_EQ(ArgMaxOf(logits, 3, vocabulary), expected);
  }
}

TEST(ArgMaxTest, TakesNoNumberForMinusInfinity) {
  const float nan = std::nanf(""),
              lowest = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(ArgMaxOf({nan, lowest, -5, nan}, 1, 4)[0], 2);
  EXPECT_EQ(ArgMaxOf({nan, nan, lowest}, 1, 3)[0], 0);
}

TEST(ArgMaxTest, NeedsItsBarrier) {
  std::vector<float> logits(600);
  logits[555] = 1;
  ExpectNeedsEachBarrier(1, std::vector<uint32_t>(1), [&](uint32_t* ids) {
    return ArgMax(logits.data(), 600, 1, 600, ids, nullptr);
  });
}

}  // namespace
}  // namespace lockstep::cuda
