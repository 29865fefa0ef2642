#include "worker/runtime/kv_capacity.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>

#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr int kLeastContext = 2;  // a prompt token and an output token
// Of a rank besides its weights and KV pages.
constexpr int64_t kOtherBytes = 150 << 20;
// Positions of the cache are counted in int.
constexpr int64_t kMostTokens = std::numeric_limits<int>::max();

int64_t PagesOf(int64_t tokens, int page_size) {
  return (tokens + page_size - 1) / page_size;
}

// Of a sequence, whatever the pages.
int LongestContext(const KvCapacityInput& input) {
  if (input.max_context > 0) return input.max_context;
  return input.usual_context > 0 ? input.usual_context
                                 : input.model_max_context;
}

}  // namespace

absl::StatusOr<int64_t> DefaultKvMemory(int64_t usable_bytes, int local_ranks,
                                        int64_t weight_bytes) {
  const int64_t left = usable_bytes / local_ranks - weight_bytes - kOtherBytes;
  if (left > 0) return left / 2;
  return absl::ResourceExhaustedError(absl::StrCat(
      "no memory is left for KV pages: this host or its control group has ",
      usable_bytes >> 20, " MiB for its ", local_ranks, " ranks, of which ",
      "each needs ", weight_bytes >> 20, " MiB for packed weights and ",
      kOtherBytes >> 20, " MiB besides; raise the limit, or set ",
      "--kv_cache_memory to try nonetheless."));
}

absl::StatusOr<int> NumPages(const KvCapacityInput& input) {
  const int64_t all_sequences =
      input.max_sequences * PagesOf(LongestContext(input), input.page_size);
  const int64_t most_pages = kMostTokens / input.page_size;
  if (input.num_pages > most_pages) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--num_pages is ", input.num_pages, "; with --page_size ", "of ",
        input.page_size, " it must be at most ", most_pages, "."));
  }
  const int64_t num_pages =
      input.num_pages > 0 ? input.num_pages
                          : std::min({input.memory_bytes / input.page_bytes,
                                      all_sequences, most_pages});
  LOCKSTEP_RETURN_IF_ERROR(MaxContext(input, num_pages).status());
  return num_pages;
}

absl::StatusOr<int> MaxContext(const KvCapacityInput& input, int num_pages) {
  const int64_t tokens = int64_t{num_pages} * input.page_size;
  if (input.max_context > input.model_max_context) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--max_context (or --max_model_len) is ", input.max_context,
        "; the model takes at most ", input.model_max_context, " tokens."));
  }
  const int64_t least = std::max(input.max_context, kLeastContext);
  if (tokens < least) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the KV cache holds ", num_pages, " pages of ", input.page_size,
        " tokens, too few for one sequence of ", least, " (a page takes ",
        input.page_bytes, " bytes of each rank); raise --kv_cache_memory ",
        "or --num_pages, or lower --max_context."));
  }
  if (input.max_context > 0) return input.max_context;
  return static_cast<int>(std::min<int64_t>(LongestContext(input), tokens));
}

}  // namespace lockstep
