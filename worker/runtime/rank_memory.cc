#include "worker/runtime/rank_memory.h"

#include <absl/strings/str_cat.h>

namespace lockstep {

absl::Status CheckRankMemory(int64_t usable_bytes, int local_ranks,
                             const RankMemory& need) {
  const int64_t share = usable_bytes / local_ranks;
  if (need.kv_bytes <= share &&
      need.weight_bytes + need.kv_bytes + need.working_bytes <= share) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "the model does not fit: this host or its control group has ",
      usable_bytes >> 20, " MiB for its ", local_ranks, " ranks, of which ",
      "each needs ", need.weight_bytes >> 20, " MiB for packed weights, ",
      need.kv_bytes >> 20, " MiB for the KV pages asked for and ",
      need.working_bytes >> 20, " MiB for activations, logits and positions; ",
      "raise the limit, or lower --kv_cache_memory, --num_pages, ",
      "--max_step_tokens or --max_context."));
}

}  // namespace lockstep
