#include "frontend/routing/policy/prefix_affinity.h"

#include <algorithm>

#include "frontend/routing/policy/least_load.h"
#include "frontend/routing/policy/page_chain.h"

namespace lockstep {
namespace {

// 2 MB a group.
constexpr int64_t kMostPages = 32'768;

}  // namespace

size_t PrefixAffinity::Pick(const RouteRequest& request,
                            absl::Span<const GroupView> groups) {
  const std::vector<uint64_t> chain = HashPages(request.prompt_token_ids);
  const auto after_last =
      std::find_if(groups.begin(), groups.end(),
                   [this](const GroupView& group) { return group.id > last_; });
  const size_t begin = after_last - groups.begin();
  size_t best = begin % groups.size();
  double best_cost = Cost(groups[best], request, chain);
  for (size_t i = 1; i < groups.size(); ++i) {
    const size_t index = (begin + i) % groups.size();
    const double cost = Cost(groups[index], request, chain);
    if (cost >= best_cost) continue;
    best = index;
    best_cost = cost;
  }
  last_ = groups[best].id;
  if (const auto index = indexes_.find(last_); index != indexes_.end()) {
    index->second.Insert(chain);
  }
  return best;
}

double PrefixAffinity::Cost(const GroupView& group, const RouteRequest& request,
                            absl::Span<const uint64_t> chain) const {
  const auto index = indexes_.find(group.id);
  const size_t cached_pages =
      index == indexes_.end() ? 0 : index->second.NumMatching(chain);
  return LoadCost(group) + static_cast<double>(request.num_tokens()) -
         static_cast<double>(cached_pages * kChainPageTokens);
}

void PrefixAffinity::OnNewGroup(GroupId id, int64_t kv_capacity_tokens) {
  const int64_t pages = kv_capacity_tokens / kChainPageTokens;
  OnGroupGone(id);
  indexes_.try_emplace(id, std::clamp<int64_t>(pages, 1, kMostPages));
}

void PrefixAffinity::OnGroupGone(GroupId id) { indexes_.erase(id); }

}  // namespace lockstep
