#include "frontend/routing/policy/least_load.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr double kTokensOfSequence = 128;
constexpr double kTokensOfPressure = 300;
constexpr double kMostUsage = 0.999;

}  // namespace

double LoadCost(const GroupView& group) {
  const double k = std::clamp(group.kv_usage, 0.0, kMostUsage);
  return static_cast<double>(group.waiting_tokens) +
         kTokensOfSequence * static_cast<double>(group.sequences) +
         kTokensOfPressure * k / (1 - k);
}

Route LeastLoad::Pick(const RouteRequest& request,
                      absl::Span<const GroupView> groups) {
  // From the one after the last, so that equal ones take turns.
  const auto after_last =
      std::find_if(groups.begin(), groups.end(),
                   [this](const GroupView& group) { return group.id > last_; });
  const size_t begin = after_last - groups.begin();
  size_t best = begin % groups.size();
  for (size_t i = 1; i < groups.size(); ++i) {
    const size_t index = (begin + i) % groups.size();
    if (LoadCost(groups[index]) < LoadCost(groups[best])) best = index;
  }
  last_ = groups[best].id;
  return {best, request.num_tokens()};
}

}  // namespace lockstep
