#include "tests/simulation/surroundings.h"

#include <absl/base/config.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace lockstep::testing {
namespace {

// Which of each two blocks, allocated one after the other, lies lower.
std::vector<bool> OrderOfAddresses(uint64_t seed) {
  const Surroundings surroundings(seed);
  std::vector<std::unique_ptr<int>> blocks;
  for (int i = 0; i < 200; ++i) blocks.push_back(std::make_unique<int>(i));
  std::vector<bool> order;
  for (size_t i = 1; i < blocks.size(); ++i) {
    order.push_back(std::less<>()(blocks[i - 1].get(), blocks[i].get()));
  }
  return order;
}

TEST(Surroundings, MemoryLiesInAnotherOrder) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  GTEST_SKIP() << "a sanitizer's memory has an order of its own.";
#endif
  EXPECT_NE(OrderOfAddresses(1), OrderOfAddresses(2));
  EXPECT_NE(OrderOfAddresses(2), OrderOfAddresses(3));
}

TEST(Surroundings, ClocksDifferAndReturn) {
  const auto now = [] {
    return std::chrono::steady_clock::now().time_since_epoch();
  };
  const auto before = now();
  std::chrono::steady_clock::duration first, second;
  {
    const Surroundings surroundings(1);
    first = now();
  }
  {
    const Surroundings surroundings(2);
    second = now();
  }
  const auto day = std::chrono::hours(24);
  EXPECT_GT(first - before, day);
  EXPECT_GT(std::chrono::abs(second - first), day);
  EXPECT_LT(now() - before, day);
}

}  // namespace
}  // namespace lockstep::testing
