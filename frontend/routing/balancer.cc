#include "frontend/routing/balancer.h"

#include <algorithm>

#include "frontend/routing/policy/page_chain.h"

namespace lockstep {

void Balancer::AddGroup(GroupId id, absl::string_view address) {
  groups_.try_emplace(id, Group{.key = HashText(address),
                                .breaker = CircuitBreaker(options_.breaker),
                                .load = {}});
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
  group.waiting_tokens = group.unaccepted_tokens;
  group.unreported_sequences = 0;
  ++group.num_reports;
  policy_->OnNewGroup(id, kv_capacity_tokens);
}

void Balancer::OnLoad(GroupId id, const GroupLoad& load, absl::Time now) {
  const auto found = groups_.find(id);
  if (found == groups_.end()) return;
  Group& group = found->second;
  group.load = load;
  group.reported_at = now;
  group.waiting_tokens = load.waiting_tokens + group.unaccepted_tokens;
  group.unreported_sequences = 0;
  ++group.num_reports;
}

Balancer::Share Balancer::Pick(const RouteRequest& request, int64_t sequences,
                               absl::Span<const GroupId> candidates,
                               absl::Time now) {
  const std::vector<GroupView> views = Choose(candidates, now);
  const Route route = policy_->Pick(request, views);
  Share share;
  share.group = views[route.index].id;
  share.tokens = route.tokens;
  share.sequences = sequences;
  Group& group = groups_.at(share.group);
  ++group.requests;
  group.sent_tokens += share.tokens;
  group.waiting_tokens += share.tokens;
  group.unaccepted_tokens += share.tokens;
  group.unaccepted_sequences += sequences;
  share.sent_after = group.sent_tokens;
  share.is_probe = group.breaker.OnStart(now);
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
          .waiting_tokens = group.waiting_tokens,
          .sequences = group.load.sequences + group.unaccepted_sequences +
                       group.unreported_sequences,
          .kv_usage = group.load.kv_usage};
}

void Balancer::OnAccepted(Share* share) {
  const auto found = groups_.find(share->group);
  if (found == groups_.end() || share->is_accepted) return;
  Group& group = found->second;
  share->is_accepted = true;
  share->report = group.num_reports;
  group.unaccepted_tokens -= share->tokens;
  group.unaccepted_sequences -= share->sequences;
  group.unreported_sequences += share->sequences;
}

void Balancer::OnToken(Share* share, absl::Time now) {
  share->has_token = true;
  share->is_judged = true;
  const auto found = groups_.find(share->group);
  if (found == groups_.end()) return;
  Group& group = found->second;
  group.breaker.OnSuccess(now);
  group.waiting_tokens =
      std::min(group.waiting_tokens, group.sent_tokens - share->sent_after);
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
  const bool is_reported =
      share.is_accepted && share.report != group.num_reports;
  if (is_reported) return;
  if (!share.has_token) {
    group.waiting_tokens =
        std::max<int64_t>(0, group.waiting_tokens - share.tokens);
  }
  if (share.is_accepted) {
    group.unreported_sequences -= share.sequences;
  } else {
    group.unaccepted_tokens -= share.tokens;
    group.unaccepted_sequences -= share.sequences;
  }
}

Balancer::Status Balancer::StatusOf(GroupId id, absl::Time now) const {
  const Group& group = groups_.at(id);
  return {.requests = group.requests,
          .view = ViewOf(id, group),
          .breaker = group.breaker.state(now)};
}

int Balancer::num_open() const {
  return static_cast<int>(std::count_if(
      groups_.begin(), groups_.end(),
      [](const auto& entry) { return entry.second.breaker.is_open(); }));
}

}  // namespace lockstep
