// What collective.h promises, of every implementation, for groups of several
// sizes; ranks are threads.

#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kernels/product/tree_sum.h"
#include "worker/collectives/blamed_rank.h"
#include "worker/collectives/collective.h"
#include "worker/collectives/gloo_collective.h"
#include "worker/collectives/shared_memory_collective.h"
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

Group MakeGloo(int size) {
  std::vector<std::unique_ptr<GlooCollective>> ranks;
  std::vector<std::vector<std::string>> towards(size,
                                                std::vector<std::string>(size));
  for (int rank = 0; rank < size; ++rank) {
    auto collective = GlooCollective::Listen("127.0.0.1", rank, size);
    EXPECT_TRUE(collective.ok()) << collective.status();
    ranks.push_back(*std::move(collective));
    const std::vector<std::string> addresses = ranks.back()->addresses();
    for (int other = 0; other < size; ++other) {
      towards[other][rank] = addresses[other];
    }
  }
  std::vector<std::thread> connecting;
  for (int rank = 0; rank < size; ++rank) {
    connecting.emplace_back([&, rank] {
      const absl::Status status = ranks[rank]->Connect(towards[rank]);
      EXPECT_TRUE(status.ok()) << status;
    });
  }
  for (std::thread& thread : connecting) thread.join();
  Group group;
  for (auto& collective : ranks) group.push_back(std::move(collective));
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
    std::vector<float> values(count);
    uint64_t state = rank * 7919 + count;
    for (float& value : values) {
      state = state * 6364136223846793005 + 1442695040888963407;
      const auto mantissa = static_cast<int>(state >> 40) % 2000 - 1000;
      const uint64_t exponent = state >> 33 & 31;
      value = static_cast<float>(mantissa) * (1 << exponent % 20) /
              (1 << exponent / 2);
    }
    return values;
  }
};

// The implementations cut at 64 Ki floats, Gloo's slices begin at 8 Ki. The
// last one is 5 MiB.
constexpr size_t kChunk = 64 * 1024;
constexpr size_t kCounts[] = {0,          1,
                              7,          1023,
                              1025,       8 * 1024 + 1,
                              kChunk - 1, kChunk + 1,
                              3 * kChunk, kChunk * 20 + 13};

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
    // Of a rank on another host nothing is known but that it is gone.
    const bool is_gloo = size_ > 1 && std::string(GetParam().name) == "Gloo";
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(is_gloo ? " left: " : "power supply"));
  });
  aborter.join();
  std::vector<float> out(size_);
  const float own = 1;
  EXPECT_EQ(group_.back()->AllGather({&own, 1}, absl::MakeSpan(out)),
            absl::UnavailableError("rank 3 lost its power supply"));
}

TEST_P(CollectiveConformance, AbortFromAnotherThreadEndsABlockedCall) {
  if (size_ == 1) GTEST_SKIP() << "nobody to wait for";
  absl::Notification began;
  absl::Status status;
  std::thread rank([&] {
    float value = 1;
    began.Notify();
    status = group_.front()->AllReduceSum({&value, 1});
  });
  began.WaitForNotification();
  group_.front()->Abort("its watchdog gave up");
  rank.join();
  EXPECT_EQ(status, absl::UnavailableError("its watchdog gave up"));
}

// So that a rank which hears of the failure by its collective alone does not
// take itself for the one that failed.
TEST_P(CollectiveConformance, WhoeverIsEndedBlamesWhomTheEndBlames) {
  const bool all_are_told = std::string(GetParam().name) != "Gloo";
  group_.front()->End(BlameRank(7, absl::UnavailableError("it is gone")));
  group_.front()->End(BlameRank(8, absl::UnavailableError("it follows")));
  OnEveryRank([&](Collective* collective) {
    float value = 1;
    const absl::Status status = collective->AllReduceSum({&value, 1});
    if (collective->rank() > 0 && !all_are_told) return;
    EXPECT_EQ(BlamedRank(status), 7) << status;
    EXPECT_EQ(status.message(), "it is gone");
  });
}

TEST_P(CollectiveConformance, NamesTheRankThatDoesNotComeInTime) {
  if (size_ == 1) GTEST_SKIP() << "nobody to wait for";
  const int late = size_ - 1;
  std::atomic<int> deadlines = 0;
  OnEveryRank([&](Collective* collective) {
    if (collective->rank() == late) return;
    collective->SetTimeout(absl::Milliseconds(200));
    float value = 1;
    const absl::Status status = collective->AllReduceSum({&value, 1});
    // One rank's limit passes first, and ends the calls of the others.
    if (absl::IsDeadlineExceeded(status)) {
      ++deadlines;
      EXPECT_EQ(status.message(),
                absl::StrCat("an all-reduce of 1 floats: rank ", late,
                             " did not come within 200ms."));
      EXPECT_EQ(BlamedRank(status), late);
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    }
    EXPECT_FALSE(collective->AllReduceSum({&value, 1}).ok());
  });
  EXPECT_GE(deadlines, 1);
  float value = 1;
  absl::Status status = group_[late]->AllReduceSum({&value, 1});
  // All that it waited for may have been sent before the others left.
  if (status.ok()) status = group_[late]->AllReduceSum({&value, 1});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
}

TEST_P(CollectiveConformance, ALimitThatIsKeptChangesNothing) {
  OnEveryRank([&](Collective* collective) {
    float value = 1;
    for (const absl::Duration limit :
         {absl::Seconds(60), absl::InfiniteDuration()}) {
      collective->SetTimeout(limit);
      value = 1;
      ASSERT_TRUE(collective->AllReduceSum({&value, 1}).ok());
      EXPECT_EQ(value, size_);
    }
  });
}

TEST_P(CollectiveConformance, CallsThatDifferEndTheGroup) {
  if (size_ == 1) GTEST_SKIP() << "nobody to differ from";
  OnEveryRank([&](Collective* collective) {
    std::vector<float> data(8), out(4 * size_);
    const absl::Status status =
        collective->rank() == 0
            ? collective->AllGather({data.data(), 4}, absl::MakeSpan(out))
            : collective->AllReduceSum(absl::MakeSpan(data));
    if (collective->rank() > 0 && status.ok()) {
      // Saw no difference yet, being quicker than the news of it.
      EXPECT_FALSE(collective->AllReduceSum(absl::MakeSpan(data)).ok());
      return;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  });
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
                      Implementation{"SharedMemory", MakeAttached, 5},
                      Implementation{"Gloo", MakeGloo, 1},
                      Implementation{"Gloo", MakeGloo, 2},
                      Implementation{"Gloo", MakeGloo, 3},
                      Implementation{"Gloo", MakeGloo, 4}),
    [](const auto& info) {
      return absl::StrCat(info.param.name, "Of", info.param.size);
    });

}  // namespace
}  // namespace lockstep
