#include "worker/runtime/rank_collective.h"

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

constexpr char kHost[] = "127.0.0.1";
constexpr absl::Duration kTimeout = absl::Seconds(60);

std::vector<std::unique_ptr<RankCollective>> OpenAll(CollectiveKind kind,
                                                     int size) {
  std::vector<std::unique_ptr<RankCollective>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_unique<RankCollective>(
        RankCollective::Options{.kind = kind, .rank = rank, .size = size}));
    EXPECT_TRUE(ranks.back()->Open(kHost).ok());
  }
  return ranks;
}

// What the rendezvous makes of the ranks' addresses.
v1::CollectiveAddress AddressFor(
    int rank, const std::vector<std::unique_ptr<RankCollective>>& ranks) {
  v1::CollectiveAddress address;
  *address.mutable_shared_memory() = ranks[0]->address().shared_memory();
  for (const auto& other : ranks) {
    if (other->address().gloo_size() > 0) {
      address.add_gloo(other->address().gloo(rank));
    }
  }
  return address;
}

class RankCollectiveTest : public ::testing::TestWithParam<CollectiveKind> {};

TEST_P(RankCollectiveTest, RanksMeetAndExchange) {
  const int size = GetParam() == CollectiveKind::kSingle ? 1 : 3;
  auto ranks = OpenAll(GetParam(), size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const absl::Status met =
          ranks[rank]->Meet(AddressFor(rank, ranks), kTimeout);
      ASSERT_TRUE(met.ok()) << met;
      float value = 1;
      ASSERT_TRUE(ranks[rank]->get()->AllReduceSum({&value, 1}).ok());
      EXPECT_EQ(value, size);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(RankCollectiveTest, AnAbortBeforeTheRanksMeetEndsTheMeeting) {
  const int size = GetParam() == CollectiveKind::kSingle ? 1 : 2;
  const auto ranks = OpenAll(GetParam(), size);
  RankCollective& last = *ranks.back();
  last.Abort("the leader left");
  const absl::Status met = last.Meet(AddressFor(size - 1, ranks), kTimeout);
  EXPECT_EQ(met, absl::UnavailableError("the leader left"));
}

TEST_P(RankCollectiveTest, AnAbortEndsTheMeetingInProgress) {
  if (GetParam() == CollectiveKind::kSingle) GTEST_SKIP() << "nobody to meet";
  const auto ranks = OpenAll(GetParam(), 2);
  absl::Notification begins;
  std::thread aborter([&] {
    begins.WaitForNotification();
    ranks[1]->Abort("the leader left");
  });
  begins.Notify();
  EXPECT_EQ(ranks[1]->Meet(AddressFor(1, ranks), kTimeout),
            absl::UnavailableError("the leader left"));
  aborter.join();
}

INSTANTIATE_TEST_SUITE_P(Kinds, RankCollectiveTest,
                         ::testing::Values(CollectiveKind::kSingle,
                                           CollectiveKind::kSharedMemory,
                                           CollectiveKind::kGloo),
                         [](const auto& info) {
                           return std::string(CollectiveName(info.param));
                         });

}  // namespace
}  // namespace lockstep
