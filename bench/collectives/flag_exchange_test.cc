#include "bench/collectives/flag_exchange.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace lockstep::bench {
namespace {

TEST(FlagExchange, AddsWhatTwoRanksHave) {
  FlagExchange exchange(100);
  const auto run = [&](int rank) {
    for (int round = 0; round < 50; ++round) {
      std::vector<float> data(100, static_cast<float>(rank + round));
      exchange.AllReduceSum(rank, absl::MakeSpan(data));
      ASSERT_EQ(data, std::vector<float>(100, 2.0f * round + 1));
    }
  };
  std::thread second(run, 1);
  run(0);
  second.join();
}

}  // namespace
}  // namespace lockstep::bench
