#pragma once

#include <absl/time/time.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "worker/group/follower_source.h"
#include "worker/group/group_failure.h"
#include "worker/group/leader_source.h"
#include "worker/group/link.h"
#include "worker/group/membership.h"
#include "worker/group/peer_watch.h"
#include "worker/group/request_inbox.h"

namespace lockstep::testing {

// The frame sources of a group in one process, over loopback sockets, without
// the step loops that would call them.
//
//   SourceGroup group(2);
//   group.leader->source->Next(/*idle=*/false, &frame);
//   group.followers[0]->source->Next(/*idle=*/true, &frame);

inline constexpr uint64_t kEpoch = 9;

// No heartbeats: what is tested is what happens without.
inline constexpr PeerWatch::Options kQuiet = {.interval = absl::Hours(1),
                                              .timeout = absl::Hours(10)};

struct SourceOptions {
  PeerWatch::Options leader = kQuiet;
  FollowerSource::Options follower = {.watch = kQuiet};
  Link::Options link = {};
  std::function<void(int rank)> on_loaded = nullptr;
};

// One process's part in the group, with the hooks a rank installs.
struct SourceRank {
  explicit SourceRank(int rank) : rank(rank) {}

  const int rank;
  GroupFailure failure{
      {.exit_within = absl::InfiniteDuration(), .last_resort = nullptr}};
};

struct SourceFollower : SourceRank {
  SourceFollower(int rank, Membership membership, const SourceOptions& options)
      : SourceRank(rank) {
    source = std::make_unique<FollowerSource>(rank, std::move(membership),
                                              &failure, options.follower);
    failure.OnFailure(
        [this](const auto& cause) { source->TellFailure(cause); });
  }
  ~SourceFollower() { failure.Disarm(); }

  std::unique_ptr<FollowerSource> source;
};

struct SourceLeader : SourceRank {
  SourceLeader(Membership membership, const SourceOptions& options)
      : SourceRank(0) {
    source = std::make_unique<LeaderSource>(std::move(membership), &inbox,
                                            &failure, options.leader,
                                            options.link, options.on_loaded);
    failure.OnFailure([this](const auto& cause) {
      inbox.Close(failure.status());
      source->TellFailure(cause);
    });
  }
  ~SourceLeader() { failure.Disarm(); }

  RequestInbox inbox{{.max_queued_requests = 100, .max_queued_tokens = 1000}};
  std::unique_ptr<LeaderSource> source;
};

inline Membership NewMembership() {
  Membership membership;
  membership.epoch = kEpoch;
  membership.io = std::make_unique<IoThread>();
  return membership;
}

inline std::pair<boost::asio::ip::tcp::socket, boost::asio::ip::tcp::socket>
ConnectedPair(boost::asio::io_context& near, boost::asio::io_context& far) {
  using boost::asio::ip::tcp;
  tcp::acceptor acceptor(
      near, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
  tcp::socket connecting(far);
  connecting.connect(acceptor.local_endpoint());
  return {acceptor.accept(), std::move(connecting)};
}

class SourceGroup {
 public:
  explicit SourceGroup(int num_followers, const SourceOptions& options = {}) {
    Membership leaders = NewMembership();
    for (int rank = 1; rank <= num_followers; ++rank) {
      Membership membership = NewMembership();
      auto [near, far] =
          ConnectedPair(leaders.io->context(), membership.io->context());
      leaders.links.push_back(std::move(near));
      membership.links.push_back(std::move(far));
      followers.push_back(std::make_unique<SourceFollower>(
          rank, std::move(membership), options));
    }
    leader = std::make_unique<SourceLeader>(std::move(leaders), options);
  }

  void Add(uint64_t request) {
    v1::AddRequest add;
    add.set_request(request);
    ASSERT_TRUE(leader->inbox.Add(add).ok());
  }

  std::vector<std::unique_ptr<SourceFollower>> followers;
  std::unique_ptr<SourceLeader> leader;
};

}  // namespace lockstep::testing
