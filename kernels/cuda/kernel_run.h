#pragma once

#include <absl/base/config.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_types.h"
#include "kernels/cuda/emulation/grid.h"
#include "kernels/cuda/test_device.h"

// What tests of kernels share. `run(out)` launches some, and returns the error.
namespace lockstep::cuda {

inline float AsFloat(float x) { return x; }
inline float AsFloat(BFloat16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

// Half a unit in the last place of T, relative.
template <typename T>
constexpr double Rounding() {
  return sizeof(T) == sizeof(float) ? 0x1p-24 : 0x1p-8;
}

// Normally distributed numbers that T has.
template <typename T>
std::vector<T> RandomValues(size_t count, std::mt19937& random,
                            float scale = 1) {
  std::normal_distribution<float> normal(0, scale);
  std::vector<T> values(count);
  for (T& value : values) {
    const float x = normal(random);
    if constexpr (sizeof(T) == sizeof(float)) {
      value = x;
    } else {
      value = {static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16)};
    }
  }
  return values;
}

template <typename T>
std::vector<float> Floats(const std::vector<T>& values) {
  std::vector<float> floats;
  for (T value : values) floats.push_back(AsFloat(value));
  return floats;
}

// Of a launch that has run.
inline CudaError Completed(CudaError launched) {
  return launched == kCudaSuccess ? WaitForDevice() : launched;
}

// What `run` leaves in `out`. Empty if it was stopped.
template <typename T, typename Run>
std::vector<T> RunIn(const emulation::Conduct& conduct, std::vector<T> out,
                     const Run& run) {
  emulation::SetConduct(conduct);
  const CudaError error = Completed(run(out.data()));
  emulation::SetConduct({});
  return error == kCudaSuccess ? out : std::vector<T>();
}

template <typename T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// Runs a kernel with its threads in every order, three times on a GPU: what it
// leaves in `out` must be the same. Returns that.
template <typename T, typename Run>
std::vector<T> SameInEveryOrder(const std::vector<T>& out, const Run& run) {
  const std::vector<T> first = RunIn({}, out, run);
  EXPECT_EQ(first.size(), out.size()) << "the kernel did not end";
  for (emulation::Order order :
       {emulation::Order::kReverse, emulation::Order::kShuffled}) {
    EXPECT_TRUE(SameBits(RunIn({order}, out, run), first))
        << "in order " << static_cast<int>(order);
  }
  return first;
}

// Takes each barrier that `run` passes out of its kernels, one after the other:
// in some order of threads the result must change, or the barrier be missed.
// `expected` is how many there are. barriers_test.py reads what it prints.
template <typename T, typename Run>
void ExpectNeedsEachBarrier(size_t expected, const std::vector<T>& out,
                            const Run& run) {
  if (OnGpu()) GTEST_SKIP() << "a GPU does not leave out what is written";
#ifdef ABSL_HAVE_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer itself reports what lacks a barrier";
#endif
  emulation::TakeBarrierSites();
  const std::vector<T> right = RunIn({}, out, run);
  const std::vector<emulation::Site> sites = emulation::TakeBarrierSites();
  EXPECT_EQ(sites.size(), expected);
  for (const emulation::Site& site : sites) {
    bool missed = false;
    for (emulation::Order order : emulation::kOrders) {
      missed |= !SameBits(RunIn({order, &site}, out, run), right);
    }
    EXPECT_TRUE(missed) << "nothing needs the barrier at " << site.file << ":"
                        << site.line;
    if (missed) {
      std::cout << "barrier " << site.file << ":" << site.line << " is needed"
                << std::endl;
    }
  }
}

}  // namespace lockstep::cuda
