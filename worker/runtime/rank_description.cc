#include "worker/runtime/rank_description.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <vector>

#include "worker/model_spec/rope_length.h"
#include "worker/model_spec/shard.h"

namespace lockstep {

std::string ShareText(absl::string_view what, int count, int size) {
  std::vector<int> shares;
  for (int rank = 0; rank < size; ++rank) {
    shares.push_back(ShareBegin(count, rank + 1, size) -
                     ShareBegin(count, rank, size));
  }
  return absl::StrCat(what, " ", absl::StrJoin(shares, "+"));
}

std::string RopeText(const ModelConfig& config) {
  if (!FollowsLength(config.rope)) return "";
  const int original = config.rope.original_max_position;
  return config.max_context > original
             ? absl::StrCat(", rope stretched beyond ", original)
             : ", as trained: a larger --max_context stretches rope";
}

}  // namespace lockstep
