#pragma once

#include <absl/status/statusor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/ops.h"
#include "kernels/threads/thread_pool.h"

namespace lockstep::kernels {

inline constexpr uint32_t kSeed = 20240517;

// Lengths of rows: of one element, around vectors, warps and blocks, and of
// models.
inline constexpr int kRowDims[] = {1,  2,  3,  7,   15,  16,  17,
                                   31, 33, 64, 100, 576, 1536};

// One instruction set on some threads, ready to run.
struct Backend {
  std::string name;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Ops> ops;
};

inline Backend MakeBackend(const std::string& isa, int threads) {
  Backend backend;
  backend.name = isa + " on " + std::to_string(threads) + " threads";
  backend.pool = std::make_unique<ThreadPool>(
      ThreadPool::Options{.num_threads = threads, .oversubscribed = true});
  absl::StatusOr<Ops> ops = Ops::Create(isa, backend.pool.get());
  if (ops.ok()) backend.ops = std::make_unique<Ops>(*std::move(ops));
  return backend;
}

// Every instruction set of this processor, on one thread and on three, against
// the reference on one. What is random starts from kSeed.
class OpsConformanceTest : public testing::Test {
 protected:
  OpsConformanceTest()
      : random_(kSeed), reference_(MakeBackend("reference", 1)) {
    RecordProperty("seed", kSeed);
    for (const char* isa : {"reference", "avx2", "avx512_vnni"}) {
      for (int threads : {1, 3}) {
        Backend backend = MakeBackend(isa, threads);
        if (backend.ops != nullptr) backends_.push_back(std::move(backend));
      }
    }
  }

  std::vector<float> Normal(size_t count, float scale = 1) {
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> values(count);
    for (float& value : values) value = normal(random_);
    return values;
  }

  // Runs `compute(ops, out)` on every back end; `out` starts as NaN, and every
  // byte of it must be the reference's.
  template <typename Compute>
  std::vector<float> ExpectSameBits(size_t out_size, const std::string& what,
                                    const Compute& compute) {
    const std::vector<float> untouched(out_size, std::nanf(""));
    std::vector<float> expected = untouched;
    compute(*reference_.ops, expected.data());
    for (const Backend& backend : backends_) {
      std::vector<float> out = untouched;
      compute(*backend.ops, out.data());
      EXPECT_EQ(FirstDifference(expected, out), -1)
          << what << ": " << backend.name;
    }
    return expected;
  }

  static int FirstDifference(const std::vector<float>& a,
                             const std::vector<float>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return i;
    }
    return -1;
  }

  std::mt19937 random_;
  Backend reference_;
  std::vector<Backend> backends_;
};

}  // namespace lockstep::kernels
