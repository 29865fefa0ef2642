// Groups on GPUs, emulated ones or those of the machine, with ranks as threads:
// the rendezvous passes on NCCL's id, and by it they meet, or do not.
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>
#include <absl/time/time.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proto/group.pb.h"
#include "tests/testing/device/test_gpu.h"
#include "worker/collectives/collective_kind.h"
#include "worker/cuda_engine/cuda_rank.h"
#include "worker/group/membership.h"
#include "worker/group/rendezvous_follower.h"
#include "worker/group/rendezvous_leader.h"
#include "worker/runtime/rank_collective.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(60);

// One rank, as far as the rendezvous.
struct JoinedRank {
  std::unique_ptr<GpuRank> gpu;
  std::unique_ptr<RankCollective> collective;
  Membership membership;
};

class GpuGroupTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const auto last = Open(size_ - 1);
    if (!last.ok()) GTEST_SKIP() << last.status();
    auto leader = RendezvousLeader::Listen("127.0.0.1:0");
    ASSERT_TRUE(leader.ok()) << leader.status();
    leader_ = *std::move(leader);
    address_ = absl::StrCat("127.0.0.1:", leader_->port());
  }

  absl::StatusOr<std::unique_ptr<GpuRank>> Open(int ordinal) {
    return CudaRank::Open(
        ordinal, {.cuda = gpu_.cuda_library(), .nccl = gpu_.nccl_library()});
  }

  absl::StatusOr<Membership> Rendezvous(int rank,
                                        const RankCollective& collective) {
    v1::Hello hello;
    hello.set_rank(rank);
    hello.set_tensor_parallel_size(size_);
    hello.set_num_pages(1);
    *hello.mutable_collective_address() = collective.address();
    if (rank > 0) {
      return JoinGroup(
          address_, hello,
          {.timeout = kTimeout, .report_every = kTimeout, .check = nullptr});
    }
    RendezvousLeader::Options options;
    options.timeout = kTimeout;
    return leader_->Gather(hello, options);
  }

  // On a thread and a device of each rank.
  void OnRanks(const std::function<void(int rank, JoinedRank&)>& run) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back([&, rank] {
        auto gpu = Open(rank);
        ASSERT_TRUE(gpu.ok()) << gpu.status();
        JoinedRank joined;
        joined.gpu = *std::move(gpu);
        joined.collective = std::make_unique<RankCollective>(
            RankCollective::Options{.kind = CollectiveKind::kNccl,
                                    .rank = rank,
                                    .size = size_,
                                    .gpu = joined.gpu.get()});
        const absl::Status opened = joined.collective->Open(/*host=*/"");
        ASSERT_TRUE(opened.ok()) << opened;
        auto membership = Rendezvous(rank, *joined.collective);
        ASSERT_TRUE(membership.ok()) << membership.status();
        joined.membership = *std::move(membership);
        run(rank, joined);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  const int size_ = GetParam();
  TestGpu gpu_{size_};
  std::unique_ptr<RendezvousLeader> leader_;
  std::string address_;
};

// The self-test's tensors grow, so each rank frees memory while others wait for
// it in the next call: on a device of its own, so that nobody waits for that.
TEST_P(GpuGroupTest, MeetsByTheIdThatTheRendezvousPassesOn) {
  for (const int seed : {1, 2, 3}) {
    if (gpu_.fake() != nullptr) gpu_.fake()->Delay(seed, /*most_us=*/200);
    if (seed > 1) SetUp();
    OnRanks([](int, JoinedRank& rank) {
      const absl::Status met =
          rank.collective->Meet(rank.membership.collective_address, kTimeout);
      EXPECT_TRUE(met.ok()) << met;
      rank.collective->Close();
    });
  }
}

// A rank that has joined the group and hangs before it comes to NCCL.
TEST_P(GpuGroupTest, ARankThatDoesNotComeEndsTheMeetingOfOthersInTime) {
  OnRanks([&](int number, JoinedRank& rank) {
    if (number == size_ - 1) return;
    const absl::Status met = rank.collective->Meet(
        rank.membership.collective_address, absl::Milliseconds(100));
    EXPECT_EQ(met.code(), absl::StatusCode::kDeadlineExceeded) << met;
    EXPECT_THAT(std::string(met.message()),
                HasSubstr(absl::StrCat("ncclCommInitRankConfig of rank ",
                                       number, " on device ", number)));
  });
}

TEST_P(GpuGroupTest, AnAbortEndsTheMeeting) {
  OnRanks([&](int number, JoinedRank& rank) {
    if (number == size_ - 1) return;
    std::thread aborter(
        [&] { rank.collective->End(absl::UnavailableError("a rank left")); });
    EXPECT_EQ(
        rank.collective->Meet(rank.membership.collective_address, kTimeout),
        absl::UnavailableError("a rank left"));
    aborter.join();
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, GpuGroupTest, ::testing::Values(2, 4));

}  // namespace
}  // namespace lockstep
