// Row-wise operations on every instruction set this processor has: the same
// bits as the reference on one thread, for awkward shapes and any number of
// threads; and the reference is right, by double precision.
#include "kernels/ops_conformance.h"

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "kernels/simd/gate.h"
#include "kernels/threads/thread_pool.h"

namespace lockstep::kernels {
namespace {

TEST_F(OpsConformanceTest, RmsNorm) {
  for (int dim : kRowDims) {
    for (int rows : {1, 2, 37}) {
      const std::vector<float> x = Normal(rows * (dim + 1));
      const std::vector<float> weight = Normal(dim);
      const std::vector<float> y = ExpectSameBits(
          rows * dim, "dim " + std::to_string(dim), [&](Ops& ops, float* out) {
            ops.RmsNorm(x.data(), dim + 1, rows, dim, weight.data(), 1e-5f, out,
                        dim);
          });
      double squares = 0;
      for (int i = 0; i < dim; ++i) squares += double{x[i]} * x[i];
      for (int i = 0; i < dim; ++i) {
        const double expected =
            x[i] / std::sqrt(squares / dim + 1e-5) * weight[i];
        EXPECT_NEAR(y[i], expected, std::abs(expected) * 1e-6);
      }
    }
  }
}

double GateOf(Gate gate, double x) {
  if (gate == Gate::kSilu) return x / (1 + std::exp(-x));
  const double root = std::sqrt(2 / std::numbers::pi);
  const double inner = root * (x + 0.044715 * x * x * x);
  // 1 + tanh(t) without the cancellation at large -t.
  return x / (1 + std::exp(-2 * inner));
}

TEST_F(OpsConformanceTest, GatedMul) {
  for (Gate gate : {Gate::kSilu, Gate::kGeluTanh}) {
    for (int dim : kRowDims) {
      const int rows = 5;
      std::vector<float> gate_up = Normal(rows * 2 * dim, 3);
      gate_up[0] = -1000;                     // beyond the range of exp
      if (dim > 1) gate_up[dim - 1] = 1e30f;  // whose square is infinite
      const std::vector<float> y = ExpectSameBits(
          rows * dim, "dim " + std::to_string(dim), [&](Ops& ops, float* out) {
            ops.GatedMul(gate_up.data(), gate, 2 * dim, rows, dim, out, dim);
          });
      for (int i = 0; i < dim; ++i) {
        const double x = gate_up[i];
        const double expected = GateOf(gate, x) * gate_up[dim + i];
        // An exponent of up to 87 is rounded before it is raised.
        EXPECT_NEAR(y[i], expected, std::abs(expected) * 1e-5 + 1e-30) << x;
      }
    }
  }
}

TEST_F(OpsConformanceTest, SoftCap) {
  for (float cap : {1.0f, 30.0f}) {
    for (int dim : {1, 15, 16, 33, 1000}) {
      const int rows = 3;
      std::vector<float> x = Normal(rows * dim, 2 * cap);
      x[0] = -1e30f;
      if (dim > 2) x[1] = 1e30f, x[2] = 1e-6f;
      const std::vector<float> y =
          ExpectSameBits(rows * dim, "cap", [&](Ops& ops, float* out) {
            std::copy(x.begin(), x.end(), out);
            ops.SoftCap(out, dim, rows, dim, cap);
          });
      for (size_t i = 0; i < y.size(); ++i) {
        const double expected = cap * std::tanh(double{x[i]} / cap);
        EXPECT_NEAR(y[i], expected, std::abs(expected) * 5e-7) << x[i];
      }
    }
  }
}

TEST_F(OpsConformanceTest, Add) {
  const int rows = 400, dim = 33;
  const std::vector<float> x = Normal(rows * dim), y = Normal(rows * dim);
  const std::vector<float> sum =
      ExpectSameBits(rows * dim, "add", [&](Ops& ops, float* out) {
        std::copy(x.begin(), x.end(), out);
        ops.Add(out, dim, y.data(), dim, rows, dim);
      });
  for (size_t i = 0; i < sum.size(); ++i) EXPECT_EQ(sum[i], x[i] + y[i]);
  const std::vector<float> half =
      ExpectSameBits(rows * dim, "add half", [&](Ops& ops, float* out) {
        std::copy(x.begin(), x.end(), out);
        ops.Add(out, dim, y.data(), dim, rows, dim, /*scale=*/0.5f);
      });
  for (size_t i = 0; i < half.size(); ++i) {
    EXPECT_EQ(half[i], x[i] + 0.5f * y[i]);
  }
}

TEST(OpsCreateTest, RefusesAnUnknownInstructionSetByFlagAndName) {
  ThreadPool pool({.num_threads = 1});
  const absl::StatusOr<Ops> ops = Ops::Create("sse9", &pool);
  EXPECT_EQ(ops.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(ops.status().message()),
              testing::HasSubstr("--cpu_isa=\"sse9\" is none of"));
}

TEST(OpsCreateTest, AutoPicksOneThatCanBeNamed) {
  ThreadPool pool({.num_threads = 1});
  absl::StatusOr<Ops> automatic = Ops::Create("auto", &pool);
  ASSERT_TRUE(automatic.ok());
  EXPECT_TRUE(Ops::Create(automatic->isa(), &pool).ok());
}

}  // namespace
}  // namespace lockstep::kernels
