#include "frontend/routing/policy/prefix_hash.h"

#include <algorithm>

#include "frontend/routing/policy/page_chain.h"

namespace lockstep {
namespace {

// Longer ones that share a system prompt and then differ should spread.
constexpr size_t kHashedTokens = 256;
constexpr double kMostOfAverage = 1.25;

// The most sequences a group may have to be sent another.
double Bound(absl::Span<const GroupView> groups) {
  int64_t sum = 1;
  for (const GroupView& group : groups) sum += group.sequences;
  return kMostOfAverage * static_cast<double>(sum) /
         static_cast<double>(groups.size());
}

}  // namespace

Route PrefixHash::Pick(const RouteRequest& request,
                       absl::Span<const GroupView> groups) {
  const auto& ids = request.prompt_token_ids;
  const uint64_t hash =
      HashTokens(0, ids.first(std::min(kHashedTokens, ids.size())));
  const double bound = Bound(groups);
  size_t best = 0;
  bool is_found = false;
  uint64_t best_score = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (static_cast<double>(groups[i].sequences) >= bound) continue;
    const uint64_t score = MixHashes(hash, groups[i].key);
    if (is_found && score <= best_score) continue;
    is_found = true;
    best = i;
    best_score = score;
  }
  return {best, request.num_tokens()};  // some group is below the average
}

}  // namespace lockstep
