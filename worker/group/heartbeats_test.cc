// Ranks that are silent or hang, as the frame sources find them by heartbeats.

#include <gtest/gtest.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <string>

#include "tests/testing/ranks/source_group.h"
#include "worker/group/frame_codec.h"

namespace lockstep {
namespace {

using ::lockstep::testing::ConnectedPair;
using ::lockstep::testing::NewMembership;
using ::lockstep::testing::SourceFollower;
using ::lockstep::testing::SourceGroup;
using ::lockstep::testing::SourceLeader;
using ::lockstep::testing::SourceOptions;
using ::lockstep::testing::SourceRank;

// Nobody is ever silent for too long.
constexpr PeerWatch::Options kPatient = {.interval = absl::Milliseconds(50),
                                         .timeout = absl::Hours(1)};
constexpr PeerWatch::Options kImpatient = {.interval = absl::Milliseconds(10),
                                           .timeout = absl::Milliseconds(100)};

// A stopped rank's connection stands, and its system still takes bytes. It is
// found while the group idles, and told to the others.
TEST(Heartbeats, AFollowerThatIsSilentFails) {
  IoThread stopped;  // never runs
  Membership leaders = NewMembership();
  auto [near, far] = ConnectedPair(leaders.io->context(), stopped.context());
  leaders.links.push_back(std::move(near));
  Membership others = NewMembership();
  auto [other_near, other_far] =
      ConnectedPair(leaders.io->context(), others.io->context());
  leaders.links.push_back(std::move(other_near));
  others.links.push_back(std::move(other_far));

  SourceFollower other(2, std::move(others), {.follower = {.watch = kPatient}});
  SourceLeader leader(std::move(leaders), {.leader = kImpatient});
  Frame frame;
  EXPECT_FALSE(leader.source->Next(/*idle=*/true, &frame).ok());
  EXPECT_FALSE(other.source->Next(/*idle=*/true, &frame).ok());
  for (const SourceRank* rank :
       {static_cast<SourceRank*>(&leader), static_cast<SourceRank*>(&other)}) {
    EXPECT_EQ(rank->failure.cause()->kind, v1::SILENT);
    EXPECT_EQ(rank->failure.cause()->ToString(),
              "rank 1 failed first: it has been silent for 100ms; its last "
              "finished step is 0, that of the leader 0.");
  }
}

// The leader reads the follower's last words when it runs again, and knows that
// it is the one that was missed.
TEST(Heartbeats, ALeaderThatIsSilentFailsAndIsToldSo) {
  IoThread leader;
  Membership membership = NewMembership();
  auto [near, far] = ConnectedPair(leader.context(), membership.io->context());
  membership.links.push_back(std::move(far));
  auto follower = std::make_unique<SourceFollower>(
      1, std::move(membership),
      SourceOptions{.follower = {.watch = kImpatient}});
  Frame frame;
  EXPECT_FALSE(follower->source->Next(/*idle=*/true, &frame).ok());
  EXPECT_EQ(follower->failure.cause()->kind, v1::SILENT);
  EXPECT_EQ(follower->failure.cause()->rank, 0);
  follower.reset();

  std::string received;
  boost::system::error_code end;
  boost::asio::read(near, boost::asio::dynamic_buffer(received), end);
  v1::FollowerReport report;
  while (true) {
    const auto bytes = TakeSized(1000, &received);
    ASSERT_TRUE(bytes.ok() && bytes->has_value());
    ASSERT_TRUE(report.ParseFromString(**bytes));
    if (!report.has_heartbeat()) break;
  }
  EXPECT_EQ(report.failure().rank(), 0);
  EXPECT_EQ(report.failure().kind(), v1::SILENT);
}

// A link that passes bytes one way only: the leader is there, and it is the
// follower that can not go on.
TEST(Heartbeats, ALeaderThatBeatsIsNotTheOneThatIsSilent) {
  IoThread far;
  Membership membership = NewMembership();
  auto [socket, follower] =
      ConnectedPair(membership.io->context(), far.context());
  membership.links.push_back(std::move(socket));
  SourceLeader leader(std::move(membership), {.leader = kPatient});
  v1::FollowerReport report;
  report.mutable_failure()->set_rank(0);
  report.mutable_failure()->set_kind(v1::SILENT);
  std::string bytes;
  AppendSized(report.SerializeAsString(), &bytes);
  boost::asio::write(follower, boost::asio::buffer(bytes));
  Frame frame;
  EXPECT_FALSE(leader.source->Next(/*idle=*/true, &frame).ok());
  EXPECT_EQ(leader.failure.cause()->rank, 1);
  EXPECT_EQ(leader.failure.cause()->kind, v1::CONNECTION_LOST);
}

// Where each rank is travels both ways, and who is overdue with it.
TEST(Heartbeats, HeartbeatsTellTheLeaderWhomAnOverdueStepWaitsFor) {
  SourceGroup group(2, {.leader = kPatient, .follower = {.watch = kPatient}});
  Frame frame;
  ASSERT_TRUE(group.leader->source->Next(/*idle=*/false, &frame).ok());
  ASSERT_TRUE(group.leader->source->Agree(Digest{1}).ok());
  group.leader->source->progress()->Enter(1, v1::EXECUTES);
  group.followers[0]->source->progress()->Enter(1, v1::EXECUTES);
  group.followers[1]->source->progress()->Enter(1, v1::PLANS);
  group.followers[0]->source->progress()->SetOverdue(1);
  EXPECT_FALSE(group.leader->source->Next(/*idle=*/true, &frame).ok());
  EXPECT_EQ(group.leader->failure.cause()->rank, 2);
  EXPECT_EQ(group.leader->failure.cause()->kind, v1::STEP_OVERDUE);
}

}  // namespace
}  // namespace lockstep
