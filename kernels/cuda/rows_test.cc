// The kernels that work row by row, against the operations of kernels/ and in
// every order of their threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "kernels/cuda/activation.h"
#include "kernels/cuda/argmax.h"
#include "kernels/cuda/gather.h"
#include "kernels/cuda/kernel_run.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/test_device.h"
#include "kernels/ops_conformance.h"
#include "kernels/product_conformance.h"
#include "kernels/simd/gate.h"
#include "kernels/weights/dtype.h"
#include "kernels/weights/random_rows.h"

namespace lockstep::cuda {
namespace {

using kernels::Gate;

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
    const float scale = dim % 2 == 0 ? 1 : 0.22f;
    const auto x = RandomValues<T>(rows * dim, this->random_);
    const auto residual = RandomValues<T>(rows * dim, this->random_);
    const auto weight = RandomValues<float>(dim, this->random_);
    // The sum in the first half, its norm in the second.
    std::vector<T> both = residual;
    both.resize(2 * rows * dim);
    both = SameInEveryOrder(both, [&](T* out) {
      return AddRmsNorm<T, T>(
          out, scale,
          {x.data(), weight.data(), 1e-5f, out + rows * dim, rows, dim},
          nullptr);
    });
    const std::vector<T> sum(both.begin(), both.begin() + rows * dim);
    const std::vector<T> y(both.begin() + rows * dim, both.end());
    for (int i = 0; i < rows * dim; ++i) {
      const double exact = double{scale} * AsFloat(x[i]) + AsFloat(residual[i]);
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

TYPED_TEST(RowsTest, GatedMul) {
  using T = TypeParam;
  for (Gate gate : {Gate::kSilu, Gate::kGeluTanh}) {
    for (int dim : kernels::kRowDims) {
      const int rows = 5;
      // Of large ones GELU's exponential errs by many units.
      auto gate_up = RandomValues<T>(rows * 2 * dim, this->random_,
                                     gate == Gate::kSilu ? 20 : 1);
      std::vector<float> expected(rows * dim);
      this->reference_.ops->GatedMul(Floats(gate_up).data(), gate, 2 * dim,
                                     rows, dim, expected.data(), dim);
      this->ExpectNear(SameInEveryOrder(std::vector<T>(rows * dim),
                                        [&](T* out) {
                                          return GatedMul<T>(
                                              gate, gate_up.data(), rows, dim,
                                              out, nullptr);
                                        }),
                       expected);
    }
  }
}

TYPED_TEST(RowsTest, GatesOfLargeNumbersAreTheNumberOrZero) {
  using T = TypeParam;
  for (Gate gate : {Gate::kSilu, Gate::kGeluTanh}) {
    const auto x = RandomValues<T>(1, this->random_, 1);
    std::vector<T> gate_up(4, x[0]), y(2);
    const T large = RandomValues<T>(1, this->random_, 1e20f)[0];
    T negative = large;
    reinterpret_cast<uint8_t*>(&negative)[sizeof(T) - 1] ^= 0x80;
    gate_up[0] = large;
    gate_up[1] = negative;
    ASSERT_EQ(
        Completed(GatedMul<T>(gate, gate_up.data(), 1, 2, y.data(), nullptr)),
        kCudaSuccess);
    for (int i : {0, 1}) {
      const float number = AsFloat(gate_up[i]);
      const double right = number < 0 ? 0 : double{number} * AsFloat(x[0]);
      EXPECT_NEAR(AsFloat(y[i]), right, std::abs(right) * 2 * Rounding<T>());
    }
  }
}

TYPED_TEST(RowsTest, GatedMulTakesAddressesThatAreNotAligned) {
  using T = TypeParam;
  const int dim = 64;
  const auto gate_up = RandomValues<T>(2 * dim + 1, this->random_);
  std::vector<T> aligned(gate_up.begin() + 1, gate_up.end());
  std::vector<T> expected(dim), y(dim);
  ASSERT_EQ(GatedMul<T>(Gate::kSilu, aligned.data(), 1, dim, expected.data(),
                        nullptr),
            0);
  ASSERT_EQ(
      GatedMul<T>(Gate::kSilu, gate_up.data() + 1, 1, dim, y.data(), nullptr),
      0);
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
                             residual.data(), /*scale=*/1,
                             {x.data(), weight.data(), 1e-5f, out, rows, dim},
                             nullptr);
                       }),
      expected);
}

TYPED_TEST(RowsTest, WithoutWeightsThereIsNoNorm) {
  using T = TypeParam;
  const int rows = 2, dim = 300;
  const auto x = RandomValues<float>(rows * dim, this->random_);
  std::vector<float> residual(rows * dim, 1);
  std::vector<T> y(rows * dim);
  ASSERT_EQ(Completed(AddRmsNorm<float, T>(
                residual.data(), /*scale=*/0.5f,
                {x.data(), nullptr, 1e-5f, y.data(), rows, dim}, nullptr)),
            kCudaSuccess);
  for (int i = 0; i < rows * dim; ++i) {
    ASSERT_EQ(residual[i], 1 + x[i] / 2);
    ASSERT_NEAR(AsFloat(y[i]), residual[i],
                std::abs(residual[i]) * Rounding<T>());
  }
}

// Two ranks with three of six query heads each and the same key head, which the
// first counts.
TYPED_TEST(RowsTest, PartsOfProjectionsAreNormedAsTheWhole) {
  using T = TypeParam;
  for (int dim : {1, 33, 64}) {
    const int rows = 3, row = 5 * dim + 2;
    const auto whole = RandomValues<T>(rows * 7 * dim, this->random_);
    const auto weight = RandomValues<float>(7 * dim, this->random_);
    // As one rank computes it.
    std::vector<float> expected = Floats(whole);
    for (int i = 0; i < rows; ++i) {
      float* const q = &expected[i * 7 * dim];
      for (auto [begin, count] : {std::pair{0, 6 * dim}, {6 * dim, dim}}) {
        this->reference_.ops->RmsNorm(q + begin, count, 1, count,
                                      &weight[begin], 1e-5f, q + begin, count);
      }
    }
    std::vector<float> squares(rows * 7);
    std::vector<std::vector<T>> parts(2, std::vector<T>(rows * row));
    for (int rank : {0, 1}) {
      for (int i = 0; i < rows; ++i) {
        const T* const from = &whole[i * 7 * dim];
        T* const to = &parts[rank][i * row];
        std::copy_n(from + rank * 3 * dim, 3 * dim, to);
        std::copy_n(from + 6 * dim, dim, to + 3 * dim);
      }
      const auto own =
          SameInEveryOrder(std::vector<float>(rows * 7), [&](float* out) {
            return HeadSquares<T>(parts[rank].data(), row, rows, dim,
                                  {6, rank * 3, 3, 0},
                                  {1, rank, 1 - rank, 3 * dim}, out, nullptr);
          });
      for (size_t i = 0; i < squares.size(); ++i) {
        EXPECT_EQ(own[i] == 0, i % 7 == 6 ? rank > 0 : i % 7 / 3 != rank);
        squares[i] += own[i];
      }
    }
    for (int rank : {0, 1}) {
      const auto normed = SameInEveryOrder(parts[rank], [&](T* x) {
        const CudaError error =
            NormPart<T>({x, row, rows, 3 * dim, &weight[rank * 3 * dim],
                         squares.data(), 7, 6, dim, 1e-5f},
                        nullptr);
        if (error != kCudaSuccess) return error;
        return NormPart<T>({x + 3 * dim, row, rows, dim, &weight[6 * dim],
                            squares.data() + 6, 7, 1, dim, 1e-5f},
                           nullptr);
      });
      std::vector<T> found;
      std::vector<float> right;
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < 4 * dim; ++j) {
          found.push_back(normed[i * row + j]);
          right.push_back(
              expected[i * 7 * dim +
                       (j < 3 * dim ? rank * 3 * dim + j : 3 * dim + j)]);
        }
        EXPECT_EQ(AsFloat(normed[i * row + 4 * dim]), 0);
      }
      this->ExpectNear(found, right);
    }
  }
}

TEST(ScaleAndCapTest, IsRight) {
  std::mt19937 random(kernels::kSeed);
  for (int count : {1, 255, 256, 1000}) {
    const auto x = RandomValues<float>(count, random, 30);
    for (float cap : {0.0f, 30.0f}) {
      const auto y = SameInEveryOrder(x, [&](float* out) {
        return ScaleAndCap(out, count, /*scale=*/0.125f, cap, nullptr);
      });
      for (int i = 0; i < count; ++i) {
        const double scaled = 0.125 * x[i];
        const double right = cap == 0 ? scaled : cap * std::tanh(scaled / cap);
        ASSERT_NEAR(y[i], right, std::abs(right) * 1e-6);
      }
    }
  }
}

TEST(EmbedTest, LeavesZerosForTheRowsOfOtherRanks) {
  using kernels::DType;
  std::mt19937 random(kernels::kSeed);
  for (DType type : kernels::kProductTypes) {
    const int dim = kernels::BlockValues(type) == 1 ? 33 : 512;
    const size_t row_bytes = kernels::RowBytes(type, dim);
    auto table = kernels::RandomRows(type, 3, dim, random);
    if (kernels::IsPlain(type)) {
      const int bytes = kernels::BlockBytes(type);
      std::fill_n(table.begin(), bytes, 0);
      table[bytes - 1] = 0x80;  // -0
    }
    const EmbeddingShard shard = {
        {type, table.data(), 3, dim}, /*first=*/100, /*scale=*/3};
    const std::vector<uint32_t> ids = {99,  102,        0,   100,
                                       103, 0x7fffffff, 101, kNoFiniteLogit};
    // Three of them where the device has chosen them.
    const std::vector<uint32_t> chosen = {103, kNoFiniteLogit, 102};
    std::vector<uint32_t> given = ids;
    given[1] = kIsChosen | 2;
    given[4] = kIsChosen | 0;
    given[7] = kIsChosen | 1;
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
        ASSERT_EQ(value, 3 * row[d]) << kernels::DTypeName(type);
        ASSERT_FALSE(value == 0 && std::signbit(value));
      }
    }
  }
}

TEST(EmbedTest, RefusesWhatItCanNotDecode) {
  const uint32_t id = 0;
  float y[256];
  EXPECT_EQ(
      Embed({{kernels::DType::kI8, nullptr, 1, 256}, 0}, {&id}, 1, y, nullptr),
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
  EXPECT_EQ(ArgMaxOf({nan, lowest, nan, -3e38f}, 1, 4)[0], 3);
}

// An infinity is the largest, but says nothing alone.
TEST(ArgMaxTest, SaysWhereNoLogitIsFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (int vocabulary : {1, 3, 32, 600, 5000}) {
    for (float logit : {std::nanf(""), -kInfinity, kInfinity}) {
      std::vector<float> logits(vocabulary + 1, logit);
      logits[vocabulary] = 1;  // not in the vocabulary
      logits[vocabulary / 3] = std::nanf("");
      EXPECT_EQ(ArgMaxOf(logits, 1, vocabulary)[0], kNoFiniteLogit);
      logits[vocabulary / 2] = -1;
      EXPECT_NE(ArgMaxOf(logits, 1, vocabulary)[0], kNoFiniteLogit);
    }
  }
  EXPECT_EQ(ArgMaxOf({-1, kInfinity, 1}, 1, 3)[0], 1);
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
