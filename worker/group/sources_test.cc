// The leader's and the followers' frame sources, over loopback sockets.

#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/write.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "worker/group/follower_source.h"
#include "worker/group/leader_source.h"

namespace lockstep {
namespace {

using boost::asio::ip::tcp;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(60);
constexpr uint64_t kEpoch = 9;

Digest DigestOf(uint8_t value) {
  Digest digest;
  digest.fill(value);
  return digest;
}

// One process's part in the group, with the hooks a rank installs.
struct Rank {
  explicit Rank(int rank) : rank(rank) {}

  const int rank;
  GroupFailure failure{
      {.exit_within = absl::InfiniteDuration(), .last_resort = nullptr}};
};

struct FollowerRank : Rank {
  FollowerRank(int rank, Membership membership) : Rank(rank) {
    source = std::make_unique<FollowerSource>(
        rank, std::move(membership), &failure, FollowerSource::Options());
    failure.OnFailure(
        [this](const auto& cause) { source->TellFailure(cause); });
  }
  ~FollowerRank() { failure.Disarm(); }

  std::unique_ptr<FollowerSource> source;
};

struct LeaderRank : Rank {
  LeaderRank(Membership membership, const Link::Options& options) : Rank(0) {
    source = std::make_unique<LeaderSource>(std::move(membership), &inbox,
                                            &failure, options);
    failure.OnFailure([this](const auto& cause) {
      inbox.Close(failure.status());
      source->TellFailure(cause);
    });
  }
  ~LeaderRank() { failure.Disarm(); }

  RequestInbox inbox{{.max_queued_requests = 100, .max_queued_tokens = 1000}};
  std::unique_ptr<LeaderSource> source;
};

// A leader and followers in one process.
class Group {
 public:
  explicit Group(int num_followers, const Link::Options& options = {}) {
    Membership leader_membership;
    leader_membership.epoch = kEpoch;
    leader_membership.io = std::make_unique<IoThread>();
    for (int rank = 1; rank <= num_followers; ++rank) {
      Membership membership;
      membership.epoch = kEpoch;
      membership.io = std::make_unique<IoThread>();
      auto [near, far] = ConnectedPair(leader_membership.io->context(),
                                       membership.io->context());
      leader_membership.links.push_back(std::move(near));
      membership.links.push_back(std::move(far));
      followers.push_back(
          std::make_unique<FollowerRank>(rank, std::move(membership)));
    }
    leader =
        std::make_unique<LeaderRank>(std::move(leader_membership), options);
  }

  void Add(uint64_t request) {
    v1::AddRequest add;
    add.set_request(request);
    ASSERT_TRUE(leader->inbox.Add(add).ok());
  }

  static std::pair<tcp::socket, tcp::socket> ConnectedPair(
      boost::asio::io_context& near, boost::asio::io_context& far) {
    tcp::acceptor acceptor(
        near, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    tcp::socket connecting(far);
    connecting.connect(acceptor.local_endpoint());
    return {acceptor.accept(), std::move(connecting)};
  }

  std::vector<std::unique_ptr<FollowerRank>> followers;
  std::unique_ptr<LeaderRank> leader;
};

TEST(Sources, EveryRankGetsTheSameBytesInTheSameSteps) {
  Group group(3);
  for (uint64_t step = 1; step <= 50; ++step) {
    for (uint64_t i = 0; i < step % 4; ++i) group.Add(step * 10 + i);
    Frame frame;
    ASSERT_TRUE(group.leader->source->Next(/*idle=*/false, &frame).ok());
    EXPECT_EQ(frame.step, step);
    EXPECT_EQ(frame.messages.size(), step % 4);
    ASSERT_TRUE(group.leader->source->Agree(DigestOf(step)).ok());
    for (auto& message : frame.messages) {
      v1::RankMessage parsed;
      ASSERT_TRUE(parsed.ParseFromString(message));
      group.leader->inbox.Release(parsed.add());
    }
    for (const auto& follower : group.followers) {
      Frame copy;
      ASSERT_TRUE(follower->source->Next(/*idle=*/true, &copy).ok());
      EXPECT_EQ(copy.step, step);
      EXPECT_THAT(copy.messages, ElementsAreArray(frame.messages));
      EXPECT_TRUE(follower->source->Agree(DigestOf(step)).ok());
    }
  }
}

TEST(Sources, AFollowerGetsItsFrameBeforeTheLeaderHasPlanned) {
  Group group(1);
  group.Add(1);
  Frame frame;
  ASSERT_TRUE(group.leader->source->Next(/*idle=*/true, &frame).ok());
  EXPECT_TRUE(group.followers[0]->source->Next(/*idle=*/true, &frame).ok());
}

TEST(Sources, AnotherDigestIsNamedWithStepExpectedAndGot) {
  Group group(1);
  Frame frame;
  ASSERT_TRUE(group.leader->source->Next(/*idle=*/false, &frame).ok());
  ASSERT_TRUE(group.leader->source->Agree(DigestOf(0xaa)).ok());
  ASSERT_TRUE(group.followers[0]->source->Next(/*idle=*/true, &frame).ok());
  const absl::Status status = group.followers[0]->source->Agree(DigestOf(0xbb));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(),
            "step 1 differs from the leader's: expected digest "
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, got "
            "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb on rank 1.");
}

TEST(Sources, AFollowersFailureReachesTheLeaderAndThroughItTheOthers) {
  Group group(2);
  group.followers[0]->failure.Report(
      {.rank = 1, .kind = v1::ENGINE_FAILED, .reason = "its engine broke."});
  Frame frame;
  // The leader idles, the other follower waits for a frame.
  const absl::Status at_leader =
      group.leader->source->Next(/*idle=*/true, &frame);
  const absl::Status at_other =
      group.followers[1]->source->Next(/*idle=*/true, &frame);
  for (const absl::Status& status : {at_leader, at_other}) {
    EXPECT_EQ(status, absl::UnavailableError(
                          "the worker group failed: rank 1 failed first: its "
                          "engine broke."));
  }
}

TEST(Sources, AFailureIsUnderstoodWhereADigestWasExpected) {
  Group group(2);
  Frame frame;
  ASSERT_TRUE(group.leader->source->Next(/*idle=*/false, &frame).ok());
  ASSERT_TRUE(group.followers[1]->source->Next(/*idle=*/true, &frame).ok());
  group.leader->failure.Report(
      {.rank = 0, .kind = v1::ENGINE_FAILED, .reason = "its plan broke."});
  EXPECT_THAT(
      std::string(group.followers[1]->source->Agree(DigestOf(1)).message()),
      HasSubstr("rank 0 failed first: its plan broke."));
  EXPECT_FALSE(group.leader->source->Agree(DigestOf(1)).ok());
}

TEST(Sources, AFollowerThatIsGoneIsNamedEverywhere) {
  Group group(2);
  group.followers.erase(group.followers.begin());  // rank 1
  Frame frame;
  EXPECT_THAT(
      std::string(
          group.followers[0]->source->Next(/*idle=*/true, &frame).message()),
      HasSubstr("rank 1 failed first: it closed the connection."));
  EXPECT_FALSE(group.leader->source->Next(/*idle=*/true, &frame).ok());
}

TEST(Sources, ALeaderThatIsGoneEndsTheFollowers) {
  Group group(2);
  group.leader.reset();
  for (const auto& follower : group.followers) {
    Frame frame;
    EXPECT_THAT(
        std::string(follower->source->Next(/*idle=*/true, &frame).message()),
        HasSubstr("rank 0 failed first: it closed the connection."));
  }
}

TEST(Sources, AfterTheStopTheLeaderWaitsForEachFollower) {
  Group group(2);
  group.leader->inbox.Stop();
  Frame frame;
  ASSERT_TRUE(group.leader->source->Next(/*idle=*/true, &frame).ok());
  ASSERT_TRUE(group.leader->source->Agree(DigestOf(1)).ok());
  EXPECT_EQ(group.leader->source->WaitForFollowers(absl::ZeroDuration()),
            absl::DeadlineExceededError("rank 1, 2 did not leave within 0."));
  for (const auto& follower : group.followers) {
    ASSERT_TRUE(follower->source->Next(/*idle=*/true, &frame).ok());
    ASSERT_TRUE(follower->source->Agree(DigestOf(1)).ok());
    follower->source->Leave();
  }
  EXPECT_TRUE(group.leader->source->WaitForFollowers(kTimeout).ok());
  group.followers.clear();
  EXPECT_TRUE(group.leader->failure.status().ok());
}

// With the stop sent: a rank that fails, or goes without a word, before it has
// left ends the wait, whatever the others do.
TEST(Sources, AFailureAfterTheStopEndsTheWaitForTheFollowers) {
  for (const bool says_so : {true, false}) {
    Group group(2);
    group.leader->inbox.Stop();
    Frame frame;
    ASSERT_TRUE(group.leader->source->Next(/*idle=*/true, &frame).ok());
    ASSERT_TRUE(group.leader->source->Agree(DigestOf(1)).ok());
    ASSERT_TRUE(group.followers[0]->source->Next(/*idle=*/true, &frame).ok());
    ASSERT_TRUE(group.followers[0]->source->Agree(DigestOf(1)).ok());
    group.followers[0]->source->Leave();
    if (says_so) {
      group.followers[1]->failure.Report({.rank = 2,
                                          .kind = v1::ENGINE_FAILED,
                                          .reason = "its engine broke."});
    } else {
      group.followers.pop_back();
    }
    EXPECT_THAT(
        std::string(
            group.leader->source->WaitForFollowers(absl::InfiniteDuration())
                .message()),
        // Which words the system finds depends on what the rank had not read.
        HasSubstr(says_so ? "rank 2 failed first: its engine broke."
                          : "rank 2 failed first: it"));
  }
}

TEST(Sources, AFollowerTooFarBehindFailsAndDelaysNobody) {
  IoThread far;  // never runs: the follower reads nothing
  Membership membership;
  membership.epoch = kEpoch;
  membership.io = std::make_unique<IoThread>();
  auto [near, silent] =
      Group::ConnectedPair(membership.io->context(), far.context());
  membership.links.push_back(std::move(near));
  LeaderRank leader(std::move(membership), {.max_unsent_bytes = 1 << 20});

  v1::AddRequest add;
  for (int i = 0; i < 1000; ++i) add.add_prompt_token_ids(100'000);
  absl::Status status;
  Frame frame;
  for (int i = 0; i < 100'000 && status.ok(); ++i) {
    add.set_request(i + 1);
    status = leader.inbox.Add(add);
    if (status.ok()) status = leader.source->Next(/*idle=*/false, &frame);
    if (status.ok()) status = leader.source->Agree(DigestOf(1));
    if (status.ok()) leader.inbox.Release(add);
  }
  EXPECT_THAT(std::string(leader.failure.status().message()),
              HasSubstr("rank 1 failed first: it is "));
}

TEST(Sources, BytesThatAreNoFramesFailTheGroup) {
  IoThread near;
  Membership membership;
  membership.epoch = kEpoch;
  membership.io = std::make_unique<IoThread>();
  auto [leader, socket] =
      Group::ConnectedPair(near.context(), membership.io->context());
  membership.links.push_back(std::move(socket));
  FollowerRank follower(1, std::move(membership));
  boost::asio::write(leader, boost::asio::buffer("\xff\xff\xff\xff\xff"));
  Frame frame;
  EXPECT_THAT(
      std::string(follower.source->Next(/*idle=*/true, &frame).message()),
      HasSubstr("a frame header of 4294967295 bytes is above the limit"));
}

}  // namespace
}  // namespace lockstep
