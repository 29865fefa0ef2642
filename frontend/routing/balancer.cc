#include "frontend/routing/balancer.h"

#include <algorithm>

#include "frontend/routing/policy/page_chain.h"

namespace lockstep {

void Balancer::Pending::Add(const Share& share, int sign) {
  tokens += sign * share.tokens;
  sequences += sign * share.sequences;
}

void Balancer::AddGroup(GroupId id, absl::string_view address) {
  groups_.try_emplace(id, Group{.key = HashText(address),
                                .breaker = CircuitBreaker(options_.breaker),
                                .load = {},
                                .unaccepted = {},
                                .unreported = {}});
}

void Balancer::RemoveGroup(GroupId id) {
  groups_.erase(id);
  policy_->OnGroupGone(id);
}

void Balancer::OnNewGroup(GroupId id, int64_t kv_capacity_tokens) {
  Group& group = groups_.at(id);
  group.breaker.Reset();
  group.load = {};
  group.reported_at = absl::InfiniteFuture();
  group.unreported = {};
  ++group.num_reports;
  policy_->OnNewGroup(id, kv_capacity_tokens);
}

void Balancer::OnLoad(GroupId id, const GroupLoad& load, absl::Time now) {
  const auto group = groups_.find(id);
  if (group == groups_.end()) return;
  group->second.load = load;
  group->second.reported_at = now;
  group->second.unreported = {};
  ++group->second.num_reports;
}

Balancer::Share Balancer::Pick(const RouteRequest& request, int64_t sequences,
                               absl::Span<const GroupId> candidates,
                               absl::Time now) {
  const std::vector<GroupView> views = Choose(candidates, now);
  const GroupId id = views[policy_->Pick(request, views)].id;
  Group& group = groups_.at(id);
  Share share;
  share.group = id;
  share.tokens = request.num_tokens();
  share.sequences = sequences;
  share.is_probe = group.breaker.OnStart(now);
  group.unaccepted.Add(share, +1);
  return share;
}

std::vector<GroupView> Balancer::Choose(absl::Span<const GroupId> candidates,
                                        absl::Time now) const {
  std::vector<GroupView> sound, allowed, all;
  for (const GroupId id : candidates) {
    const Group& group = groups_.at(id);
    const GroupView view = ViewOf(id, group);
    all.push_back(view);
    if (!group.breaker.Allows(now)) continue;
    allowed.push_back(view);
    if (now - group.reported_at < options_.stale_after) sound.push_back(view);
  }
  return !sound.empty() ? sound : !allowed.empty() ? allowed : all;
}

GroupView Balancer::ViewOf(GroupId id, const Group& group) {
  return {.id = id,
          .key = group.key,
          .waiting_tokens = group.load.waiting_tokens +
                            group.unaccepted.tokens + group.unreported.tokens,
          .sequences = group.load.sequences + group.unaccepted.sequences +
                       group.unreported.sequences,
          .kv_usage = group.load.kv_usage};
}

void Balancer::OnAccepted(Share* share) {
  const auto group = groups_.find(share->group);
  if (group == groups_.end() || share->is_accepted) return;
  share->is_accepted = true;
  share->report = group->second.num_reports;
  group->second.unaccepted.Add(*share, -1);
  group->second.unreported.Add(*share, +1);
}

void Balancer::OnToken(Share* share, absl::Time now) {
  share->is_judged = true;
  const auto group = groups_.find(share->group);
  if (group != groups_.end()) group->second.breaker.OnSuccess(now);
}

void Balancer::OnFailure(Share* share, absl::Time now) {
  share->is_judged = true;
  const auto group = groups_.find(share->group);
  if (group != groups_.end()) group->second.breaker.OnFailure(now);
}

void Balancer::OnEnd(const Share& share) {
  const auto found = groups_.find(share.group);
  if (found == groups_.end()) return;
  Group& group = found->second;
  if (share.is_probe && !share.is_judged) group.breaker.OnProbeGivenUp();
  if (!share.is_accepted) {
    group.unaccepted.Add(share, -1);
  } else if (share.report == group.num_reports) {
    group.unreported.Add(share, -1);
  }
}

int Balancer::num_open() const {
  return static_cast<int>(std::count_if(
      groups_.begin(), groups_.end(),
      [](const auto& entry) { return entry.second.breaker.is_open(); }));
}

}  // namespace lockstep
