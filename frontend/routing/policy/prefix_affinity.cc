#include "frontend/routing/policy/prefix_affinity.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "frontend/routing/policy/least_load.h"
#include "frontend/routing/policy/page_chain.h"

namespace lockstep {
namespace {

// 1 MB a group.
constexpr int64_t kMostPages = 32'768;

}  // namespace

Route PrefixAffinity::Pick(const RouteRequest& request,
                           absl::Span<const GroupView> groups) {
  const std::vector<uint64_t> chain = HashPages(request.prompt_token_ids);
  const auto after_last =
      std::find_if(groups.begin(), groups.end(),
                   [this](const GroupView& group) { return group.id > last_; });
  const size_t begin = after_last - groups.begin();
  Route best;
  double best_cost = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < groups.size(); ++i) {
    const size_t index = (begin + i) % groups.size();
    const int64_t tokens =
        request.num_tokens() - CachedTokens(groups[index].id, chain);
    const double cost = LoadCost(groups[index]) + static_cast<double>(tokens);
    if (cost >= best_cost) continue;
    best = {index, tokens};
    best_cost = cost;
  }
  last_ = groups[best.index].id;
  if (const auto index = indexes_.find(last_); index != indexes_.end()) {
    index->second.Insert(chain);
  }
  return best;
}

int64_t PrefixAffinity::CachedTokens(GroupId id,
                                     absl::Span<const uint64_t> chain) const {
  const auto index = indexes_.find(id);
  if (index == indexes_.end()) return 0;
  return static_cast<int64_t>(index->second.NumMatching(chain)) *
         kChainPageTokens;
}

void PrefixAffinity::OnNewGroup(GroupId id, int64_t kv_capacity_tokens) {
  const int64_t pages = kv_capacity_tokens / kChainPageTokens;
  OnGroupGone(id);
  indexes_.try_emplace(id, std::clamp<int64_t>(pages, 1, kMostPages));
}

void PrefixAffinity::OnGroupGone(GroupId id) { indexes_.erase(id); }

}  // namespace lockstep
