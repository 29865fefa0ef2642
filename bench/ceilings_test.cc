#include "bench/ceilings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "kernels/threads/thread_pool.h"
#include "kernels/weights/dtype.h"
#include "kernels/weights/packed_matrix.h"

namespace lockstep::bench {
namespace {

// Operations a second of the best of a few products.
double GemmRate(kernels::ThreadPool& pool) {
  constexpr int kOut = 1024, kCols = 1024, kRows = 64, kPasses = 8;
  auto ops = kernels::Ops::Create("auto", &pool);
  EXPECT_TRUE(ops.ok()) << ops.status();
  const std::vector<float> weights(kOut * kCols, 0.5f), x(kRows * kCols, 1);
  std::vector<float> y(kRows * kOut);
  kernels::PackedMatrix w(kCols, kCols);
  w.AddRows(kernels::DType::kF32, kOut, weights.data(), kCols * sizeof(float),
            0);
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto begin = std::chrono::steady_clock::now();
    ops->Gemm(w, x.data(), kCols, kRows, y.data(), kOut);
    const std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - begin;
    best = std::max(best, 2.0 * kOut * kCols * kRows / seconds.count());
  }
  EXPECT_EQ(y.front(), 0.5f * kCols);
  return best;
}

TEST(Ceilings, AreAboveWhatAProductReachesButNotFarFromIt) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no AVX2";
  const Ceilings ceilings = MeasureCeilings(1);
  EXPECT_EQ(ceilings.threads, 1);
  EXPECT_GT(ceilings.l3_bytes, 0);
  EXPECT_GT(ceilings.dram_read, 0);
  EXPECT_GT(ceilings.l3_read, 0);

  kernels::ThreadPool pool({.num_threads = 1});
  const double share = GemmRate(pool) / ceilings.fp32;
  RecordProperty("share_of_fp32_ceiling", std::to_string(share));
  EXPECT_GT(share, 0.01);
  EXPECT_LT(share, 4);
}

TEST(Ceilings, OfDotProductsAreThereWhereTheProcessorHasThem) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no AVX2";
  const Ceilings ceilings = MeasureCeilings(1);
  const bool has_avx512 = __builtin_cpu_supports("avx512f");
  const bool has_vnni = has_avx512 && __builtin_cpu_supports("avx512vnni");
  EXPECT_EQ(ceilings.int8 > 0, has_vnni);
  EXPECT_EQ(ceilings.int16 > 0, has_vnni);
  EXPECT_EQ(ceilings.bf16 > 0,
            has_avx512 && __builtin_cpu_supports("avx512bf16"));
  // Four products a lane against one.
  if (has_vnni) {
    EXPECT_GT(ceilings.int8, ceilings.fp32);
  }
}

}  // namespace
}  // namespace lockstep::bench
