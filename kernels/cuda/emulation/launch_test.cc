#include "kernels/cuda/emulation/launch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <utility>
#include <vector>

namespace lockstep::emulation {
namespace {

constexpr int kLaunchFailure = 719;

CUstream_st* const kStream = reinterpret_cast<CUstream_st*>(8);

class LaunchTest : public testing::Test {
 protected:
  ~LaunchTest() override { SetStreams(nullptr); }

  // A grid of 64 threads that count themselves.
  int Launch(CUstream_st* stream) {
    return LaunchGrid(stream, {{2}, {32}}, [this] { ++threads_; });
  }

  std::atomic<int> threads_ = 0;
};

TEST_F(LaunchTest, RunsAtOnceWhereThereAreNoStreams) {
  EXPECT_EQ(Launch(kStream), 0);
  EXPECT_EQ(threads_, 64);
}

TEST_F(LaunchTest, RunsWhenItsStreamComesToIt) {
  std::vector<std::function<int()>> queue;
  SetStreams([&](CUstream_st* stream, std::function<int()> work) {
    EXPECT_EQ(stream, kStream);
    queue.push_back(std::move(work));
    return 0;
  });
  EXPECT_EQ(Launch(kStream), 0);
  EXPECT_EQ(threads_, 0);
  ASSERT_EQ(queue.size(), 1);
  EXPECT_EQ(queue[0](), 0);
  EXPECT_EQ(threads_, 64);
  EXPECT_EQ(Launch(nullptr), 0);
  EXPECT_EQ(threads_, 128);
}

TEST_F(LaunchTest, ReturnsTheErrorOfTheStream) {
  SetStreams([](CUstream_st*, const std::function<int()>&) { return 700; });
  EXPECT_EQ(Launch(kStream), 700);
  EXPECT_EQ(threads_, 0);
}

TEST_F(LaunchTest, AFaultOfTheGridIsItsError) {
  const GridShape too_large = {{}, {1025}};
  EXPECT_EQ(LaunchGrid(nullptr, too_large, [] {}), kLaunchFailure);
  int error = 0;
  SetStreams([&](CUstream_st*, const std::function<int()>& work) {
    error = work();
    return 0;
  });
  EXPECT_EQ(LaunchGrid(kStream, too_large, [] {}), 0);
  EXPECT_EQ(error, kLaunchFailure);
}

}  // namespace
}  // namespace lockstep::emulation
