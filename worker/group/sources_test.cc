// The leader's and the followers' frame sources, over loopback sockets.

#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/write.hpp>
#include <string>

#include "tests/testing/ranks/source_group.h"

namespace lockstep {
namespace {

using ::lockstep::testing::ConnectedPair;
using ::lockstep::testing::NewMembership;
using ::lockstep::testing::SourceFollower;
using ::lockstep::testing::SourceGroup;
using ::lockstep::testing::SourceLeader;
using ::lockstep::testing::SourceOptions;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(60);

Digest DigestOf(uint8_t value) {
  Digest digest;
  digest.fill(value);
  return digest;
}

TEST(Sources, EveryRankGetsTheSameBytesInTheSameSteps) {
  SourceGroup group(3);
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

// At once, whatever the pace of the heartbeats, of which there are none here.
TEST(Sources, TheLeaderHearsOfEachFollowerThatHasLoaded) {
  absl::Notification loaded[3];
  SourceOptions options;
  options.on_loaded = [&](int rank) { loaded[rank].Notify(); };
  SourceGroup group(2, options);
  group.followers[1]->source->TellLoaded();
  loaded[2].WaitForNotification();
  EXPECT_FALSE(loaded[1].HasBeenNotified());
  group.followers[0]->source->TellLoaded();
  loaded[1].WaitForNotification();
}

TEST(Sources, AFollowerGetsItsFrameBeforeTheLeaderHasPlanned) {
  SourceGroup group(1);
  group.Add(1);
  Frame frame;
  ASSERT_TRUE(group.leader->source->Next(/*idle=*/true, &frame).ok());
  EXPECT_TRUE(group.followers[0]->source->Next(/*idle=*/true, &frame).ok());
}

TEST(Sources, AnotherDigestIsNamedWithStepExpectedAndGot) {
  SourceGroup group(1);
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
  SourceGroup group(2);
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
  SourceGroup group(2);
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
  SourceGroup group(2);
  group.followers.erase(group.followers.begin());  // rank 1
  Frame frame;
  EXPECT_THAT(
      std::string(
          group.followers[0]->source->Next(/*idle=*/true, &frame).message()),
      HasSubstr("rank 1 failed first: it closed the connection."));
  EXPECT_FALSE(group.leader->source->Next(/*idle=*/true, &frame).ok());
}

TEST(Sources, ALeaderThatIsGoneEndsTheFollowers) {
  SourceGroup group(2);
  group.leader.reset();
  for (const auto& follower : group.followers) {
    Frame frame;
    EXPECT_THAT(
        std::string(follower->source->Next(/*idle=*/true, &frame).message()),
        HasSubstr("rank 0 failed first: it closed the connection."));
  }
}

TEST(Sources, AfterTheStopTheLeaderWaitsForEachFollower) {
  SourceGroup group(2);
  group.leader->inbox.Stop();
  Frame frame;
  ASSERT_TRUE(group.leader->source->Next(/*idle=*/true, &frame).ok());
  ASSERT_TRUE(group.leader->source->Agree(DigestOf(1)).ok());
  for (const auto& follower : group.followers) {
    ASSERT_TRUE(follower->source->Next(/*idle=*/true, &frame).ok());
    ASSERT_TRUE(follower->source->Agree(DigestOf(1)).ok());
    follower->source->Leave();
  }
  EXPECT_TRUE(group.leader->source->WaitForFollowers(kTimeout).ok());
  group.followers.clear();
  EXPECT_TRUE(group.leader->failure.status().ok());
}

TEST(Sources, AFollowerThatDoesNotLeaveIsNamed) {
  SourceGroup group(2);
  group.leader->inbox.Stop();
  Frame frame;
  ASSERT_TRUE(group.leader->source->Next(/*idle=*/true, &frame).ok());
  ASSERT_TRUE(group.leader->source->Agree(DigestOf(1)).ok());
  ASSERT_TRUE(group.followers[0]->source->Next(/*idle=*/true, &frame).ok());
  ASSERT_TRUE(group.followers[0]->source->Agree(DigestOf(1)).ok());
  group.followers[0]->source->Leave();
  EXPECT_EQ(
      group.leader->source->WaitForFollowers(absl::Seconds(1)),
      absl::UnavailableError("the worker group failed: rank 2 failed first: it "
                             "did not leave within 1s of the stop."));
}

// With the stop sent: a rank that fails, or goes without a word, before it has
// left ends the wait, whatever the others do.
TEST(Sources, AFailureAfterTheStopEndsTheWaitForTheFollowers) {
  for (const bool says_so : {true, false}) {
    SourceGroup group(2);
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
  Membership membership = NewMembership();
  auto [near, silent] = ConnectedPair(membership.io->context(), far.context());
  membership.links.push_back(std::move(near));
  SourceLeader leader(std::move(membership),
                      {.link = {.max_unsent_bytes = 1 << 20}});

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
  Membership membership = NewMembership();
  auto [leader, socket] =
      ConnectedPair(near.context(), membership.io->context());
  membership.links.push_back(std::move(socket));
  SourceFollower follower(1, std::move(membership), {});
  boost::asio::write(leader, boost::asio::buffer("\xff\xff\xff\xff\xff"));
  Frame frame;
  EXPECT_THAT(
      std::string(follower.source->Next(/*idle=*/true, &frame).message()),
      HasSubstr("a frame header of 4294967295 bytes is above the limit"));
}

TEST(Sources, AFollowerThatLeavesItsFramesUnreadFails) {
  SourceOptions options;
  options.follower.max_unread_frames = 10;
  SourceGroup group(1, options);
  Frame frame;
  absl::Status status;
  while (status.ok()) {
    status = group.leader->source->Next(/*idle=*/false, &frame);
    if (status.ok()) status = group.leader->source->Agree(DigestOf(1));
  }
  EXPECT_EQ(status.message(),
            "the worker group failed: rank 1 failed first: it is more than 10 "
            "steps behind the leader.");
  EXPECT_EQ(group.leader->failure.cause()->kind, v1::TOO_FAR_BEHIND);
}

TEST(Sources, AReportThatIsNoneFailsTheGroup) {
  for (const std::string& bytes :
       {std::string("\xff\xff\xff\xff"), std::string(4, '\0'),
        std::string("\1\0\0\0\xff", 5)}) {
    IoThread far;
    Membership membership = NewMembership();
    auto [socket, follower] =
        ConnectedPair(membership.io->context(), far.context());
    membership.links.push_back(std::move(socket));
    SourceLeader leader(std::move(membership), {});
    boost::asio::write(follower, boost::asio::buffer(bytes));
    Frame frame;
    EXPECT_FALSE(leader.source->Next(/*idle=*/true, &frame).ok());
    EXPECT_EQ(leader.failure.cause()->rank, 1);
    EXPECT_EQ(leader.failure.cause()->kind, v1::PROTOCOL_VIOLATED);
  }
}

}  // namespace
}  // namespace lockstep
