#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/time.h>
#include <absl/types/span.h>

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "frontend/routing/policy/routing_policy.h"
#include "frontend/routing/resilience/circuit_breaker.h"

namespace lockstep {

// As a group reports it.
struct GroupLoad {
  int64_t waiting_tokens = 0;
  int64_t sequences = 0;  // running or waiting
  double kv_usage = 0;    // 0 to 1
};

// Keeps what is known of each group's load and health, and asks a policy.
//
//   Balancer balancer(std::move(policy), {});
//   balancer.AddGroup(1, "host:50052");
//   balancer.OnNewGroup(1, capacity);
//   Balancer::Share share = balancer.Pick(request, 1, {1}, now);
//   balancer.OnAccepted(&share);
//   balancer.OnToken(&share, now);
//   balancer.OnEnd(share);
//
// A report is some time old when it comes. What was sent to a group and is not
// in a report yet is added to it: a request is in the reports that come after
// the group has accepted it. And a group computes prompts in order: when a
// request has its first token, no token waits that was sent before it.
//
// Knows no clock, which makes it a part of simulations: times are given. Not
// thread-safe.
class Balancer {
 public:
  struct Options {
    CircuitBreaker::Options breaker = {};
    // A group whose last report is older is asked only if no other can be.
    absl::Duration stale_after = absl::Seconds(3);
  };

  // A request at a group, from Pick to OnEnd.
  struct Share {
    GroupId group = 0;
    int64_t tokens = 0;
    int64_t sequences = 0;
    int64_t sent_after = 0;  // tokens that the group was sent, this one's too
    uint64_t report = 0;     // the last one before it was accepted
    bool is_accepted = false;
    bool has_token = false;
    bool is_probe = false;
    bool is_judged = false;
  };

  Balancer(std::unique_ptr<RoutingPolicy> policy, const Options& options)
      : policy_(std::move(policy)), options_(options) {}

  void AddGroup(GroupId id, absl::string_view address);
  void RemoveGroup(GroupId id);
  // It is ready, and was not: its processes are new.
  void OnNewGroup(GroupId id, int64_t kv_capacity_tokens);
  void OnLoad(GroupId id, const GroupLoad& load, absl::Time now);

  // REQUIRES: `candidates`, in order, are groups, and there is one.
  // Those whose breaker is open and those that are silent are left out, unless
  // they are all.
  Share Pick(const RouteRequest& request, int64_t sequences,
             absl::Span<const GroupId> candidates, absl::Time now);

  // Each does nothing for a group that was removed.
  void OnAccepted(Share* share);
  void OnToken(Share* share, absl::Time now);  // the first
  void OnFailure(Share* share, absl::Time now);
  // Once, last.
  void OnEnd(const Share& share);

  // What is known of a group, for those who watch.
  struct Status {
    uint64_t requests = 0;  // sent to it
    GroupView view;
    CircuitBreaker::State breaker = CircuitBreaker::State::kClosed;
  };
  Status StatusOf(GroupId id, absl::Time now) const;

  // Groups whose breaker is not closed.
  int num_open() const;

 private:
  struct Group {
    uint64_t key;
    CircuitBreaker breaker;
    uint64_t requests = 0;
    GroupLoad load;  // the last report's
    uint64_t num_reports = 0;
    absl::Time reported_at = absl::InfiniteFuture();
    int64_t waiting_tokens = 0;
    int64_t sent_tokens = 0;  // ever
    int64_t unaccepted_tokens = 0;
    int64_t unaccepted_sequences = 0;
    int64_t unreported_sequences = 0;  // accepted since the last report
  };

  static GroupView ViewOf(GroupId id, const Group& group);
  // Of the candidates those that are best asked.
  std::vector<GroupView> Choose(absl::Span<const GroupId> candidates,
                                absl::Time now) const;

  const std::unique_ptr<RoutingPolicy> policy_;
  const Options options_;
  std::map<GroupId, Group> groups_;
};

}  // namespace lockstep
