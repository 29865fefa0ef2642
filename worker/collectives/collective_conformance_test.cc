// What collective.h promises, of every implementation, for groups of several
// sizes; ranks are threads.

#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kernels/product/tree_sum.h"
#include "worker/collectives/collective.h"
#include "worker/collectives/shared_memory_collective.h"
#include "worker/collectives/shared_segment.h"
#include "worker/collectives/single_collective.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using Group = std::vector<std::unique_ptr<Collective>>;

Group MakeSingle(int) {
  Group group;
  group.push_back(std::make_unique<SingleCollective>());
  return group;
}

Group MakeLocal(int size) {
  auto local = MakeLocalGroup(size);
  EXPECT_TRUE(local.ok()) << local.status();
  Group group;
  for (auto& collective : *local) group.push_back(std::move(collective));
  return group;
}

Group MakeAttached(int size) {
  auto first = SharedMemoryCollective::Create(size);
  EXPECT_TRUE(first.ok()) << first.status();
  const SharedMemoryCollective::Address address = (*first)->address();
  Group group;
  group.push_back(*std::move(first));
  for (int rank = 1; rank < size; ++rank) {
    auto collective = SharedMemoryCollective::Attach(address, rank, size);
    EXPECT_TRUE(collective.ok()) << collective.status();
    group.push_back(*std::move(collective));
  }
  return group;
}

struct Implementation {
  const char* name;
  Group (*make)(int size);
  int size;
};

class CollectiveConformance : public ::testing::TestWithParam<Implementation> {
 protected:
  const int size_ = GetParam().size;
  const Group group_ = GetParam().make(size_);

  void OnEveryRank(const std::function<void(Collective*)>& fn) {
    std::vector<std::thread> ranks;
    for (const auto& collective : group_) {
      ranks.emplace_back([&] { fn(collective.get()); });
    }
    for (std::thread& rank : ranks) rank.join();
  }

  // Awkward values, of very different magnitude, so that the order shows.
  static std::vector<float> Values(int rank, size_t count) {
    std::mt19937 random(rank * 7919 + count);
    std::vector<float> values(count);
    for (float& value : values) {
      value = std::ldexp(static_cast<float>(random() % 2000) - 1000.0f,
                         static_cast<int>(random() % 40) - 20);
    }
    return values;
  }
};

constexpr size_t kChunk = SharedSegment::kChunkFloats;
constexpr size_t kCounts[] = {0,    1,          7,          1023,
                              1025, kChunk - 1, kChunk + 1, 3 * kChunk};

TEST_P(CollectiveConformance, KnowsRankAndSize) {
  for (int rank = 0; rank < size_; ++rank) {
    EXPECT_EQ(group_[rank]->rank(), rank);
    EXPECT_EQ(group_[rank]->size(), size_);
  }
}

TEST_P(CollectiveConformance, SumsInTreeOrderOnEveryRank) {
  for (const size_t count : kCounts) {
    SCOPED_TRACE(count);
    std::vector<std::vector<float>> inputs;
    for (int rank = 0; rank < size_; ++rank) {
      inputs.push_back(Values(rank, count));
    }
    std::vector<float> expected(count);
    for (size_t i = 0; i < count; ++i) {
      expected[i] =
          kernels::TreeSum(size_, [&](int rank) { return inputs[rank][i]; });
    }
    std::vector<std::vector<float>> data = inputs;
    OnEveryRank([&](Collective* collective) {
      EXPECT_TRUE(
          collective->AllReduceSum(absl::MakeSpan(data[collective->rank()]))
              .ok());
    });
    for (int rank = 0; rank < size_; ++rank) {
      EXPECT_EQ(data[rank], expected) << "rank " << rank;
    }
  }
}

TEST_P(CollectiveConformance, GathersInRankOrder) {
  for (const size_t count : kCounts) {
    SCOPED_TRACE(count);
    std::vector<float> expected;
    for (int rank = 0; rank < size_; ++rank) {
      const std::vector<float> values = Values(rank, count);
      expected.insert(expected.end(), values.begin(), values.end());
    }
    OnEveryRank([&](Collective* collective) {
      std::vector<float> out(size_ * count);
      EXPECT_TRUE(collective
                      ->AllGather(Values(collective->rank(), count),
                                  absl::MakeSpan(out))
                      .ok());
      EXPECT_EQ(out, expected);
    });
  }
}

TEST_P(CollectiveConformance, GathersWhereARanksPartLies) {
  for (const size_t count : kCounts) {
    SCOPED_TRACE(count);
    std::vector<float> expected;
    for (int rank = 0; rank < size_; ++rank) {
      const std::vector<float> values = Values(rank, count);
      expected.insert(expected.end(), values.begin(), values.end());
    }
    OnEveryRank([&](Collective* collective) {
      std::vector<float> out(size_ * count);
      const absl::Span<float> own =
          absl::MakeSpan(out).subspan(collective->rank() * count, count);
      const std::vector<float> values = Values(collective->rank(), count);
      std::copy(values.begin(), values.end(), own.begin());
      EXPECT_TRUE(collective->AllGather(own, absl::MakeSpan(out)).ok());
      EXPECT_EQ(out, expected);
    });
  }
}

TEST_P(CollectiveConformance, CallsFollowEachOtherWithoutMixingUp) {
  constexpr int kRounds = 300;
  OnEveryRank([&](Collective* collective) {
    for (int round = 0; round < kRounds; ++round) {
      std::vector<float> sum(1 + round % 5, collective->rank() + round);
      ASSERT_TRUE(collective->AllReduceSum(absl::MakeSpan(sum)).ok());
      ASSERT_EQ(sum.back(), size_ * round + size_ * (size_ - 1) / 2);
      const float own = 1000 * round + collective->rank();
      std::vector<float> all(size_);
      ASSERT_TRUE(collective->AllGather({&own, 1}, absl::MakeSpan(all)).ok());
      for (int rank = 0; rank < size_; ++rank) {
        ASSERT_EQ(all[rank], 1000 * round + rank);
      }
    }
  });
  for (const auto& collective : group_) {
    EXPECT_EQ(collective->num_all_reduces(), kRounds);
    EXPECT_EQ(collective->num_all_gathers(), kRounds);
  }
}

TEST_P(CollectiveConformance, WaitsForARankThatLags) {
  if (size_ == 1) GTEST_SKIP() << "nobody to wait for";
  absl::Notification others_began;
  std::atomic<int> began = 0;
  OnEveryRank([&](Collective* collective) {
    if (collective->rank() == size_ - 1) {
      others_began.WaitForNotification();
    } else if (++began == size_ - 1) {
      others_began.Notify();
    }
    float value = 1;
    ASSERT_TRUE(collective->AllReduceSum({&value, 1}).ok());
    EXPECT_EQ(value, size_);
  });
}

TEST_P(CollectiveConformance, AbortEndsCallsInProgressWithItsReason) {
  std::atomic<int> waiting = 0;
  std::thread aborter([&] {
    while (waiting < size_ - 1) std::this_thread::yield();
    group_.back()->Abort("rank 3 lost its power supply");
    group_.back()->Abort("a second reason");
  });
  OnEveryRank([&](Collective* collective) {
    // The last rank never comes.
    if (size_ > 1 && collective->rank() == size_ - 1) return;
    ++waiting;
    float value = 1;
    absl::Status status;
    while (status.ok()) status = collective->AllReduceSum({&value, 1});
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr("power supply"));
  });
  aborter.join();
}

TEST_P(CollectiveConformance, FailsEveryCallAfterAnAbort) {
  group_.front()->Abort("the leader left");
  OnEveryRank([&](Collective* collective) {
    float value = 1;
    std::vector<float> out(size_);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(collective->AllReduceSum({&value, 1}).code(),
                absl::StatusCode::kUnavailable);
      EXPECT_EQ(collective->AllGather({&value, 1}, absl::MakeSpan(out)).code(),
                absl::StatusCode::kUnavailable);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, CollectiveConformance,
    ::testing::Values(Implementation{"Single", MakeSingle, 1},
                      Implementation{"Local", MakeLocal, 1},
                      Implementation{"Local", MakeLocal, 2},
                      Implementation{"Local", MakeLocal, 3},
                      Implementation{"Local", MakeLocal, 8},
                      Implementation{"SharedMemory", MakeAttached, 1},
                      Implementation{"SharedMemory", MakeAttached, 2},
                      Implementation{"SharedMemory", MakeAttached, 5}),
    [](const auto& info) {
      return absl::StrCat(info.param.name, "Of", info.param.size);
    });

}  // namespace
}  // namespace lockstep
