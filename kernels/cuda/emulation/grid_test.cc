// What the emulation promises: right results, and a sentence where a GPU would
// misbehave in silence.
#include "kernels/cuda/emulation/grid.h"

#include <absl/base/config.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/emulation/cuda_language.h"

namespace lockstep::emulation {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kAllLanes = 0xffffffff;

// Reverses each 64 values through shared memory; the barrier is the point.
std::vector<int> Reversed(const std::vector<int>& in, const Conduct& conduct) {
  std::vector<int> out(in.size());
  SetConduct(conduct);
  const std::string fault = RunGrid(
      {static_cast<unsigned>(in.size() / 64)}, {64}, 64 * sizeof(int), [&] {
        auto* shared = static_cast<int*>(SharedMemory());
        const int block = blockIdx.x * 64;
        shared[threadIdx.x] = in[block + threadIdx.x];
        __syncthreads();
        out[block + threadIdx.x] = shared[63 - threadIdx.x];
      });
  SetConduct({});
  EXPECT_EQ(fault, "");
  return out;
}

TEST(Emulation, AMissingBarrierShowsInEveryOrder) {
  std::vector<int> in(256), expected(256);
  for (int i = 0; i < 256; ++i) in[i] = i + 1;
  for (int i = 0; i < 256; ++i) expected[i] = in[i / 64 * 64 + 63 - i % 64];
  TakeBarrierSites();
  for (Order order : kOrders) EXPECT_EQ(Reversed(in, {order}), expected);
  const std::vector<Site> sites = TakeBarrierSites();
  ASSERT_EQ(sites.size(), 1);
#ifndef ABSL_HAVE_THREAD_SANITIZER  // which reports it
  for (Order order : kOrders) {
    EXPECT_NE(Reversed(in, {order, &sites[0]}), expected);
  }
#endif
}

TEST(Emulation, KnowsItsPlaceInTheGrid) {
  std::vector<int> seen(2 * 3 * 2 * 4 * 2);
  ASSERT_EQ(RunGrid({2, 3, 2}, {4, 2}, 0,
                    [&] {
                      const int block =
                          blockIdx.x +
                          gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
                      ++seen[(block * blockDim.y + threadIdx.y) * blockDim.x +
                             threadIdx.x];
                    }),
            "");
  EXPECT_THAT(seen, testing::Each(1));
}

TEST(Emulation, LanesExchangeValues) {
  std::vector<int> from_first(64), neighbour(64);
  ASSERT_EQ(RunGrid({}, {64}, 0,
                    [&] {
                      const int id = threadIdx.x;
                      from_first[id] = __shfl_sync(kAllLanes, id, 0);
                      neighbour[id] = __shfl_xor_sync(kAllLanes, id, 1);
                    }),
            "");
  for (int id = 0; id < 64; ++id) {
    EXPECT_EQ(from_first[id], id / 32 * 32);
    EXPECT_EQ(neighbour[id], id ^ 1);
  }
}

TEST(Emulation, ABarrierDoesNotWaitForWhoHasExited) {
  std::atomic<int> reached = 0;
  EXPECT_EQ(RunGrid({}, {64}, 0,
                    [&] {
                      if (threadIdx.x >= 32) return;
                      __syncthreads();
                      ++reached;
                    }),
            "");
  EXPECT_EQ(reached, 32);
}

TEST(Emulation, DynamicSharedMemoryIsNotANumberAtFirst) {
  EXPECT_EQ(RunGrid({2}, {1}, sizeof(float),
                    [] {
                      auto* shared = static_cast<float*>(SharedMemory());
                      EXPECT_TRUE(*shared != *shared);
                      *shared = 0;
                    }),
            "");
}

TEST(Emulation, ABarriersSiteIsItsFileAndLineInAnyObject) {
  const std::string copied = "a.h";
  EXPECT_EQ((Site{"a.h", 3}), (Site{copied.c_str(), 3}));
  EXPECT_FALSE((Site{"a.h", 3}) == (Site{"a.h", 4}));
  EXPECT_FALSE((Site{"a.h", 3}) == (Site{"b.h", 3}));
  EXPECT_FALSE((Site{"a.h", 3}) == (Site{nullptr, 3}));
}

TEST(Emulation, TellsOfABarrierThatNotAllReach) {
  EXPECT_THAT(RunGrid({3}, {64}, 0,
                      [] {
                        if (threadIdx.x < 33) __syncthreads();
                        if (threadIdx.x >= 33) __syncwarp();
                      }),
              HasSubstr("for threads that do not come"));
  EXPECT_THAT(RunGrid({3}, {64}, 0,
                      [] {
                        if (threadIdx.x % 2 == 0) {
                          __syncthreads();
                        } else {
                          __syncthreads();
                        }
                      }),
              HasSubstr("for each other"));
  EXPECT_THAT(RunGrid({3}, {64}, 0,
                      [] {
                        if (threadIdx.x == 0) {
                          __syncwarp();
                        } else {
                          __syncthreads();
                        }
                      }),
              HasSubstr("for threads that do not come"));
}

TEST(Emulation, TellsOfALaneThatHasExited) {
  EXPECT_EQ(RunGrid({5, 2}, {32}, 0,
                    [] {
                      if (threadIdx.x == 3) return;
                      __shfl_sync(kAllLanes, 1, 0);
                    }),
            "block (0, 0, 0): thread (4, 0, 0): names a lane that has exited");
}

TEST(Emulation, TellsOfALaneOutsideTheMask) {
  EXPECT_THAT(RunGrid({}, {32}, 0, [] { __shfl_sync(0xffffu, 1, 0); }),
              HasSubstr("thread (16, 0, 0): not in the mask it gives"));
  EXPECT_THAT(RunGrid({}, {32}, 0,
                      [] {
                        if (threadIdx.x < 16) __shfl_sync(0xffffu, 1, 20);
                      }),
              HasSubstr("reads a lane not in its mask"));
}

TEST(Emulation, RefusesWhatNoGpuTakes) {
  const auto nothing = [] {};
  EXPECT_THAT(RunGrid({}, {1025}, 0, nothing), HasSubstr("1 to 1024"));
  EXPECT_THAT(RunGrid({1, 65536}, {1}, 0, nothing), HasSubstr("1 to 65535"));
  EXPECT_THAT(RunGrid({0}, {1}, 0, nothing), HasSubstr("a grid of (0, 1, 1)"));
  EXPECT_THAT(RunGrid({}, {1}, 100 * 1024, nothing),
              HasSubstr("102400 bytes of shared memory"));
}

TEST(Emulation, GoesOnAfterAFault) {
  EXPECT_NE(RunGrid({}, {64}, 0,
                    [] {
                      if (threadIdx.x == 0) __syncwarp();
                    }),
            "");
  std::atomic<int> threads = 0;
  EXPECT_EQ(RunGrid({}, {64}, 0, [&] { ++threads; }), "");
  EXPECT_EQ(threads, 64);
}

}  // namespace
}  // namespace lockstep::emulation
