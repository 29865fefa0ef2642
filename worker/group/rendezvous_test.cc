#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/write.hpp>
#include <ctime>
#include <thread>
#include <vector>

#include "worker/group/rendezvous_follower.h"
#include "worker/group/rendezvous_leader.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(60);

v1::Hello HelloOf(int rank, int size, int num_pages = 100) {
  v1::Hello hello;
  hello.set_rank(rank);
  hello.set_tensor_parallel_size(size);
  hello.set_build_id("build");
  hello.set_num_pages(num_pages);
  hello.set_process_id(1000 + rank);
  hello.set_host(absl::StrCat("node-", rank));
  if (rank == 0) {
    hello.mutable_collective_address()->mutable_shared_memory()->set_process_id(
        77);
  }
  return hello;
}

std::unique_ptr<RendezvousLeader> Listen() {
  auto leader = RendezvousLeader::Listen("127.0.0.1:0");
  EXPECT_TRUE(leader.ok()) << leader.status();
  return *std::move(leader);
}

std::string AddressOf(const RendezvousLeader& leader) {
  return absl::StrCat("127.0.0.1:", leader.port());
}

JoinOptions PatientJoin() {
  return {.timeout = kTimeout, .report_every = kTimeout, .check = nullptr};
}

absl::StatusOr<Membership> Join(const std::string& address,
                                const v1::Hello& hello) {
  return JoinGroup(address, hello, PatientJoin());
}

RendezvousLeader::Options Patient() {
  RendezvousLeader::Options options;
  options.timeout = kTimeout;
  options.epoch = 42;
  return options;
}

TEST(Rendezvous, AllAgreeOnEpochPagesAndCollective) {
  auto leader = Listen();
  std::vector<std::thread> followers;
  for (int rank = 1; rank < 4; ++rank) {
    followers.emplace_back([&, address = AddressOf(*leader), rank] {
      const auto joined = Join(address, HelloOf(rank, 4, 100 - rank));
      ASSERT_TRUE(joined.ok()) << joined.status();
      EXPECT_EQ(joined->epoch, 42);
      EXPECT_EQ(joined->num_pages, 97);
      EXPECT_EQ(joined->collective_address.shared_memory().process_id(), 77);
    });
  }
  const auto group = leader->Gather(HelloOf(0, 4), Patient());
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->num_pages, 97);
  EXPECT_EQ(group->links.size(), 3);
  for (std::thread& follower : followers) follower.join();
}

// "FROM>TO": what rank TO connects to rank FROM by.
v1::Hello HelloOverGloo(int rank, int size) {
  v1::Hello hello = HelloOf(rank, size);
  hello.clear_collective_address();
  for (int other = 0; other < size; ++other) {
    hello.mutable_collective_address()->add_gloo(
        other == rank ? "" : absl::StrCat(rank, ">", other));
  }
  return hello;
}

TEST(Rendezvous, PassesOnTheLeadersIdOfNccl) {
  const std::string id("\0NCCL's\xff", 8);
  const auto hello_of = [&](int rank) {
    v1::Hello hello = HelloOf(rank, 3);
    hello.clear_collective_address();
    hello.mutable_collective_address()->set_nccl_id(rank == 0 ? id : "");
    return hello;
  };
  auto leader = Listen();
  std::vector<std::thread> followers;
  for (int rank = 1; rank < 3; ++rank) {
    followers.emplace_back([&, address = AddressOf(*leader), rank] {
      const auto joined = Join(address, hello_of(rank));
      ASSERT_TRUE(joined.ok()) << joined.status();
      EXPECT_EQ(joined->collective_address.nccl_id(), id);
    });
  }
  const auto group = leader->Gather(hello_of(0), Patient());
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->collective_address.nccl_id(), id);
  for (std::thread& follower : followers) follower.join();
}

TEST(Rendezvous, PassesOnWhatEachRankConnectsToOthersBy) {
  const auto expect_addresses = [](const Membership& membership, int rank) {
    std::vector<std::string> expected;
    for (int other = 0; other < 3; ++other) {
      expected.push_back(other == rank ? "" : absl::StrCat(other, ">", rank));
    }
    EXPECT_THAT(membership.collective_address.gloo(),
                ::testing::ElementsAreArray(expected));
  };
  auto leader = Listen();
  std::vector<std::thread> followers;
  for (int rank = 2; rank > 0; --rank) {
    followers.emplace_back([&, address = AddressOf(*leader), rank] {
      const auto joined = Join(address, HelloOverGloo(rank, 3));
      ASSERT_TRUE(joined.ok()) << joined.status();
      expect_addresses(*joined, rank);
    });
  }
  const auto group = leader->Gather(HelloOverGloo(0, 3), Patient());
  ASSERT_TRUE(group.ok()) << group.status();
  expect_addresses(*group, 0);
  for (std::thread& follower : followers) follower.join();
}

// A rank that starts again by itself, or a second one of its number.
TEST(Rendezvous, WhoComesAfterTheGroupHasFormedIsRefusedByName) {
  auto leader = Listen();
  const std::string address = AddressOf(*leader);
  std::thread follower([&] { EXPECT_TRUE(Join(address, HelloOf(1, 2)).ok()); });
  const auto group = leader->Gather(HelloOf(0, 2), Patient());
  ASSERT_TRUE(group.ok()) << group.status();
  follower.join();
  group->io->Start();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Join(address, HelloOf(1, 2)).status(),
              absl::FailedPreconditionError(absl::StrCat(
                  "the leader at ", address,
                  " refused: the group has formed, and rank 1 has joined "
                  "already, as process 1001 on node-1; a group starts again "
                  "as a whole.")));
  }
}

TEST(Rendezvous, AGroupOfOneIsThereAtOnce) {
  const auto group = Listen()->Gather(HelloOf(0, 1, 55), Patient());
  ASSERT_TRUE(group.ok());
  EXPECT_EQ(group->num_pages, 55);
  EXPECT_TRUE(group->links.empty());
}

TEST(Rendezvous, ARankThatDiffersIsRefusedAndTheRightOneStillJoins) {
  auto leader = Listen();
  std::thread followers([address = AddressOf(*leader)] {
    v1::Hello other = HelloOf(1, 2);
    other.set_build_id("other");
    const auto refused = Join(address, other);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(
        std::string(refused.status().message()),
        HasSubstr("rank 1 on node-1 has another build than the leader: its is "
                  "other, the leader's is build."));
    EXPECT_TRUE(Join(address, HelloOf(1, 2)).ok());
  });
  EXPECT_TRUE(leader->Gather(HelloOf(0, 2), Patient()).ok());
  followers.join();
}

TEST(Rendezvous, OneOfTwoClaimsToARankIsRefused) {
  auto leader = Listen();
  std::thread followers([address = AddressOf(*leader)] {
    std::atomic<int> joined = 0, refused = 0;
    absl::Notification one_is_refused;
    const auto claim = [&] {
      const auto result = Join(address, HelloOf(1, 3));
      if (result.ok()) {
        ++joined;
        return;
      }
      EXPECT_THAT(std::string(result.status().message()),
                  HasSubstr("rank 1 has joined already, as process 1001 on "
                            "node-1."));
      ++refused;
      one_is_refused.Notify();
    };
    std::thread first(claim), second(claim);
    one_is_refused.WaitForNotification();
    EXPECT_TRUE(Join(address, HelloOf(2, 3)).ok());
    first.join();
    second.join();
    EXPECT_EQ(joined, 1);
    EXPECT_EQ(refused, 1);
  });
  EXPECT_TRUE(leader->Gather(HelloOf(0, 3), Patient()).ok());
  followers.join();
}

TEST(Rendezvous, ARankThatLeftWhileWaitingMayComeAgain) {
  auto leader = Listen();
  std::thread followers([address = AddressOf(*leader)] {
    JoinOptions impatient = PatientJoin();
    impatient.timeout = absl::Milliseconds(300);
    const auto gave_up = JoinGroup(address, HelloOf(1, 3), impatient);
    EXPECT_EQ(gave_up.status().code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(gave_up.status().message()), HasSubstr(address));
    std::thread again([&] { EXPECT_TRUE(Join(address, HelloOf(1, 3)).ok()); });
    EXPECT_TRUE(Join(address, HelloOf(2, 3)).ok());
    again.join();
  });
  const auto group = leader->Gather(HelloOf(0, 3), Patient());
  EXPECT_TRUE(group.ok()) << group.status();
  followers.join();
}

TEST(Rendezvous, ACallerThatTalksNonsenseHoldsUpNobody) {
  auto leader = Listen();
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket silent(context), loud(context);
  const boost::asio::ip::tcp::endpoint endpoint(
      boost::asio::ip::address_v4::loopback(), leader->port());
  silent.connect(endpoint);
  loud.connect(endpoint);
  boost::asio::write(loud, boost::asio::buffer("GET / HTTP/1.1\r\n\r\n"));
  std::thread follower([address = AddressOf(*leader)] {
    EXPECT_TRUE(Join(address, HelloOf(1, 2)).ok());
  });
  EXPECT_TRUE(leader->Gather(HelloOf(0, 2), Patient()).ok());
  follower.join();
}

TEST(Rendezvous, SilentCallersMakeRoomForTheNext) {
  auto leader = Listen();
  boost::asio::io_context context;
  std::vector<boost::asio::ip::tcp::socket> silent;
  std::thread callers([&, address = AddressOf(*leader)] {
    for (int i = 0; i < 300; ++i) {
      silent.emplace_back(context).connect(
          {boost::asio::ip::address_v4::loopback(),
           static_cast<uint16_t>(leader->port())});
    }
    EXPECT_TRUE(Join(address, HelloOf(1, 2)).ok());
  });
  EXPECT_TRUE(leader->Gather(HelloOf(0, 2), Patient()).ok());
  callers.join();
}

TEST(Rendezvous, WaitsOutAShortageOfFileDescriptors) {
  auto leader = Listen();
  const std::string address = AddressOf(*leader);
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket caller(context);
  caller.connect({boost::asio::ip::address_v4::loopback(),
                  static_cast<uint16_t>(leader->port())});
  std::vector<int> files;
  for (int file; (file = dup(0)) >= 0;) files.push_back(file);
  // A busy loop of failing accepts would end in the timeout just the same, but
  // with a second of CPU time.
  RendezvousLeader::Options options = Patient();
  options.timeout = absl::Seconds(1);
  const std::clock_t begin = std::clock();
  EXPECT_FALSE(leader->Gather(HelloOf(0, 2), options).ok());
  const std::clock_t used = std::clock() - begin;
  for (const int file : files) close(file);
  EXPECT_LT(used, CLOCKS_PER_SEC / 2);
}

TEST(Rendezvous, ALeaderThatLeavesAfterTheHelloEndsTheWait) {
  auto leader = Listen();
  std::thread follower([address = AddressOf(*leader)] {
    EXPECT_EQ(Join(address, HelloOf(1, 3)).status(),
              absl::UnavailableError(
                  absl::StrCat("the leader at --leader_address ", address,
                               " left before the group had formed.")));
  });
  RendezvousLeader::Options options = Patient();
  options.timeout = absl::Milliseconds(300);
  EXPECT_FALSE(leader->Gather(HelloOf(0, 3), options).ok());
  leader.reset();
  follower.join();
}

TEST(Rendezvous, ANameThatNobodyHasYetIsLookedUpAgain) {
  JoinOptions options;
  options.timeout = absl::Milliseconds(300);
  const absl::Status joined =
      JoinGroup("nobody.invalid:7000", HelloOf(1, 2), options).status();
  EXPECT_EQ(joined.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(joined.message().find("cannot find the host \"nobody.invalid\""),
            std::string::npos)
      << joined;
}

TEST(Rendezvous, AFollowersLocalRankThatEndedEndsItsWait) {
  auto leader = Listen();
  JoinOptions options = PatientJoin();
  options.check = [] { return absl::UnavailableError("rank 2 ended."); };
  EXPECT_EQ(JoinGroup(AddressOf(*leader), HelloOf(1, 3), options).status(),
            absl::UnavailableError("rank 2 ended."));
}

TEST(Rendezvous, TakesANumberOfPagesThatIsNoInt) {
  auto leader = Listen();
  v1::Hello boaster = HelloOf(1, 2);
  boaster.set_num_pages(0xffff'ffff);
  std::thread follower([&, address = AddressOf(*leader)] {
    EXPECT_EQ(Join(address, boaster)->num_pages, 100);
  });
  EXPECT_EQ(leader->Gather(HelloOf(0, 2), Patient())->num_pages, 100);
  follower.join();
}

TEST(Rendezvous, NamesTheRanksThatDidNotCome) {
  auto leader = Listen();
  RendezvousLeader::Options options = Patient();
  options.timeout = absl::Milliseconds(1);
  const auto group = leader->Gather(HelloOf(0, 4), options);
  EXPECT_EQ(group.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(group.status().message(),
            "rank 1, 2, 3 did not join within --group_timeout of 1ms.");
}

TEST(Rendezvous, ARankThatJoinedAndLeftIsMissingAgain) {
  auto leader = Listen();
  RendezvousLeader::Options options = Patient();
  options.timeout = absl::Seconds(1);
  JoinOptions short_while;
  short_while.timeout = absl::Milliseconds(300);
  std::thread impatient([&, address = AddressOf(*leader)] {
    EXPECT_FALSE(JoinGroup(address, HelloOf(1, 3), short_while).ok());
  });
  const auto group = leader->Gather(HelloOf(0, 3), options);
  impatient.join();
  EXPECT_EQ(group.status().message(),
            "rank 1, 2 did not join within --group_timeout of 1s.");
}

TEST(Rendezvous, ALocalRankThatEndedEndsTheWait) {
  RendezvousLeader::Options options = Patient();
  options.check = [] { return absl::UnavailableError("rank 1 ended."); };
  EXPECT_EQ(Listen()->Gather(HelloOf(0, 2), options).status(),
            absl::UnavailableError("rank 1 ended."));
}

TEST(Rendezvous, AnAddressInUseNamesTheFlag) {
  auto leader = Listen();
  const auto second = RendezvousLeader::Listen(AddressOf(*leader));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("choose another with --leader_address"));
}

}  // namespace
}  // namespace lockstep
