// The kernels that work row by row, against the operations of kernels/ and in
// every order of their threads.
#include <gtest/gtest.h>

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
            return RmsNorm<T>({x.data(), weight.data(), 1e-5f, out, rows, dim},
                              nullptr);
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
      return AddRmsNorm<T>(
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
    return RmsNorm<T>({x.data(), weight.data(), 1e-5f, out, 1, dim}, nullptr);
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

TYPED_TEST(RowsTest, EmbedLeavesZerosForTheRowsOfOtherRanks) {
  using T = TypeParam;
  for (int dim : {1, 33, 200}) {
    auto table = RandomValues<T>(3 * dim, this->random_);
    std::memset(&table[0], 0, sizeof(T));
    reinterpret_cast<uint8_t*>(&table[0])[sizeof(T) - 1] = 0x80;  // -0
    const EmbeddingShard<T> shard = {table.data(), /*first=*/100, 3, dim};
    const std::vector<uint32_t> ids = {99, 102, 0, 100, 103, 0xffffffff, 101};
    const std::vector<T> y =
        SameInEveryOrder(std::vector<T>(ids.size() * dim), [&](T* out) {
          return Embed<T>(shard, ids.data(), ids.size(), out, nullptr);
        });
    for (size_t i = 0; i < ids.size(); ++i) {
      const bool held = ids[i] >= 100 && ids[i] < 103;
      for (int d = 0; d < dim; ++d) {
        const float value = AsFloat(y[i * dim + d]);
        EXPECT_EQ(value, held ? AsFloat(table[(ids[i] - 100) * dim + d]) : 0);
        EXPECT_FALSE(value == 0 && std::signbit(value));
      }
    }
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
