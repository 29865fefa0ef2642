// Counts allocations of a step's operations: there are none.
#include <absl/status/statusor.h>
#include <absl/types/span.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "kernels/attention/attend_args.h"
#include "kernels/attention/paged_kv.h"
#include "kernels/attention/token_batch.h"
#include "kernels/ops.h"
#include "kernels/rotary.h"
#include "kernels/row_group.h"
#include "kernels/simd/gate.h"
#include "kernels/threads/thread_pool.h"
#include "kernels/weights/arithmetic.h"
#include "kernels/weights/dtype.h"
#include "kernels/weights/packed_matrix.h"
#include "tests/testing/memory/allocation_counter.h"

namespace lockstep::kernels {
namespace {

using lockstep::testing::NumAllocations;

class NoAllocationTest : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Isas, NoAllocationTest,
                         ::testing::Values("reference", "avx2", "avx512_vnni"));

TEST_P(NoAllocationTest, OperationsAllocateNothing) {
  ThreadPool pool({.num_threads = 2, .oversubscribed = true});
  absl::StatusOr<Ops> ops = Ops::Create(GetParam(), &pool);
  if (!ops.ok()) GTEST_SKIP() << ops.status();

  constexpr int kTokens = 40, kHeadDim = 16, kHeads = 4, kRow = 64;
  constexpr int kKvRow = 2 * kHeadDim, kPageSize = 16;
  std::vector<int32_t> positions(kTokens), sequence_of(kTokens);
  // Beyond the first chunk, so that attention is split among threads.
  constexpr int kFirst = kAttendChunk + 5, kEnd = kFirst + kTokens;
  std::iota(positions.begin(), positions.end(), kFirst);
  std::vector<int32_t> pages((kEnd + kPageSize - 1) / kPageSize);
  std::iota(pages.begin(), pages.end(), 0);
  const std::vector<int32_t> kv_head_of = {0, 0, 1, 1};
  const int32_t* table = pages.data();
  std::vector<float> x(kTokens * kRow, 0.5f), y(x), weight(kRow, 1.0f);
  std::vector<float> angles(kEnd * kHeadDim / 2, 0.7f);
  std::vector<float> keys(pages.size() * kPageSize * kKvRow), values(keys);
  const PagedKv kv = {.keys = keys.data(),
                      .values = values.data(),
                      .num_kv_heads = 2,
                      .page_size = kPageSize,
                      .head_dim = kHeadDim};
  const std::vector<float> weights(kRow * kRow, 0.5f);
  PackedMatrix strict(kRow, kRow / 2), fast(kRow, kRow, Arithmetic::kFast);
  strict.AddRows(DType::kF32, kRow, weights.data(), kRow * sizeof(float), 0);
  fast.AddRows(DType::kF32, kRow / 2, weights.data(), kRow * sizeof(float), 0);
  fast.AddRows(DType::kF32, kRow / 2, weights.data(), kRow * sizeof(float), 0);
  ops->ReserveProducts(kTokens, kRow);

  for (int tokens : {kTokens, 1}) {
    const TokenBatch batch = {tokens, positions.data(), sequence_of.data(),
                              &table};
    const int64_t before = NumAllocations();
    ops->RmsNorm(x.data(), kRow, tokens, kRow, weight.data(), 1e-5f, y.data(),
                 kRow);
    for (const PackedMatrix* w : {&strict, &fast}) {
      ops->Gemm(*w, x.data(), kRow, tokens, y.data(), kRow);
    }
    ops->GatedGemm(fast, Gate::kGeluTanh, x.data(), kRow, tokens, y.data(),
                   y.data(), kRow);
    const RowGroup groups[] = {{&fast, 0, 1}, {&fast, 1, tokens}};
    ops->GroupedGemm(absl::MakeSpan(groups, tokens > 1 ? 2 : 1), x.data(), kRow,
                     y.data(), kRow);
    ops->NormRope(y.data(), kRow, kHeads, kHeadDim, weight.data(), 1e-5f,
                  RopeStyle::kHalves, kHeadDim, angles.data(), angles.data(),
                  batch);
    ops->StoreKv(x.data(), kRow, x.data(), kRow, batch, kv);
    ops->Attention(y.data(), kRow, kHeads, kv_head_of.data(), {.scale = 0.25f},
                   batch, kv, x.data(), kRow);
    ops->GatedMul(x.data(), Gate::kSilu, kRow, tokens, kRow / 2, y.data(),
                  kRow / 2);
    ops->SoftCap(y.data(), kRow, tokens, kRow, 30.0f);
    ops->Add(x.data(), kRow, y.data(), kRow, tokens, kRow);
    EXPECT_EQ(NumAllocations(), before) << tokens << " tokens";
  }
}

// So wide that the room kept for short blocks at the end of slices is small.
TEST(NoAllocationCountTest, AReservedProductAllocatesNothingForAnyType) {
  constexpr int kCols = 8192, kRows = 8;
  ThreadPool pool({.num_threads = 1});
  const std::vector<float> x(kRows * kCols, 0.5f);
  std::vector<float> y(kRows);
  for (DType type : {DType::kF32, DType::kQ8_0, DType::kQ4_1, DType::kQ6_K}) {
    absl::StatusOr<Ops> ops = Ops::Create("auto", &pool);
    ASSERT_TRUE(ops.ok()) << ops.status();
    ops->ReserveProducts(kRows, kCols);
    const std::vector<uint8_t> weights(RowBytes(type, kCols));
    PackedMatrix w(kCols, kCols, Arithmetic::kFast);
    w.AddRows(type, 1, weights.data(), weights.size(), 0);
    const int64_t before = NumAllocations();
    ops->Gemm(w, x.data(), kCols, kRows, y.data(), 1);
    EXPECT_EQ(NumAllocations(), before) << DTypeName(type);
  }
}

// The count sees the one allocation that Ops allows itself.
TEST(NoAllocationCountTest, SeesAProductLargerThanWhatWasReserved) {
  ThreadPool pool({.num_threads = 1});
  absl::StatusOr<Ops> ops = Ops::Create("auto", &pool);
  ASSERT_TRUE(ops.ok()) << ops.status();
  constexpr int kCols = 64;
  const std::vector<float> weights(kCols, 0.5f), x(2 * kCols, 0.5f);
  std::vector<float> y(2);
  PackedMatrix w(kCols, kCols, Arithmetic::kFast);
  w.AddRows(DType::kF32, 1, weights.data(), kCols * sizeof(float), 0);
  const int64_t before = NumAllocations();
  ops->Gemm(w, x.data(), kCols, /*rows=*/2, y.data(), 1);
  EXPECT_EQ(NumAllocations(), before + 1);
  ops->Gemm(w, x.data(), kCols, /*rows=*/1, y.data(), 1);
  EXPECT_EQ(NumAllocations(), before + 1);
}

}  // namespace
}  // namespace lockstep::kernels
