#include "worker/runtime/rank_collective.h"

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/testing/device/fake_gpu_rank.h"

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
  last.End(absl::UnavailableError("the leader left"));
  const absl::Status met = last.Meet(AddressFor(size - 1, ranks), kTimeout);
  EXPECT_EQ(met, absl::UnavailableError("the leader left"));
}

TEST_P(RankCollectiveTest, AnAbortEndsTheMeetingInProgress) {
  if (GetParam() == CollectiveKind::kSingle) GTEST_SKIP() << "nobody to meet";
  const auto ranks = OpenAll(GetParam(), 2);
  absl::Notification begins;
  std::thread aborter([&] {
    begins.WaitForNotification();
    ranks[1]->End(absl::UnavailableError("the leader left"));
  });
  begins.Notify();
  EXPECT_EQ(ranks[1]->Meet(AddressFor(1, ranks), kTimeout),
            absl::UnavailableError("the leader left"));
  aborter.join();
}

TEST(RankCollective, OnGpusRankZerosIdGoesOutAndAllMeetByIt) {
  for (const int rank : {0, 1}) {
    testing::FakeGpuRank gpu("the id");
    absl::Status told;
    RankCollective collective(
        {.kind = CollectiveKind::kNccl,
         .rank = rank,
         .size = 2,
         .gpu = &gpu,
         .failed = [&](const absl::Status& status) { told = status; }});
    ASSERT_TRUE(collective.Open(kHost).ok());
    EXPECT_EQ(gpu.opened.rank, rank);
    EXPECT_EQ(gpu.opened.size, 2);
    gpu.opened.failed(absl::UnavailableError("broken"));
    EXPECT_EQ(told, absl::UnavailableError("broken"));
    EXPECT_EQ(collective.address().nccl_id(), rank == 0 ? "the id" : "");
    v1::CollectiveAddress others;
    others.set_nccl_id("the id");
    ASSERT_TRUE(collective.Meet(others, kTimeout).ok());
    EXPECT_EQ(gpu.met_by, "the id");
    EXPECT_EQ(collective.get(), gpu.collective());
    collective.Close();
    EXPECT_TRUE(gpu.is_closed);
  }
}

TEST(RankCollective, OnGpusAnEndBeforeTheRanksMeetEndsTheMeeting) {
  for (const bool is_open : {false, true}) {
    testing::FakeGpuRank gpu("the id");
    RankCollective collective(
        {.kind = CollectiveKind::kNccl, .rank = 1, .size = 2, .gpu = &gpu});
    const auto error = absl::UnavailableError("the leader left");
    if (!is_open) collective.End(error);
    ASSERT_TRUE(collective.Open(kHost).ok());
    if (is_open) collective.End(error);
    EXPECT_EQ(collective.Meet({}, kTimeout), error);
  }
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
