#pragma once

#include <absl/status/statusor.h>

#include <cstdint>

namespace lockstep {

// What decides how many KV pages a rank can hold, and how long a sequence can
// be.
struct KvCapacityInput {
  int64_t page_bytes = 0;  // on this rank
  int page_size = 16;      // tokens
  int num_pages = 0;       // --num_pages; 0: as memory allows
  int64_t memory_bytes = 0;
  int max_sequences = 64;
  int max_context = 0;        // --max_context; 0: as usual
  int usual_context = 0;      // tokens, at most the next; 0: the next
  int model_max_context = 0;  // tokens
};

// Bytes for the KV pages of each rank where --kv_cache_memory does not say:
// half of what its packed weights, `weight_bytes`, and 150 MiB leave of its
// share of `usable_bytes`. The other half is for the model's mapped file, a
// gateway and whatever else runs here. RESOURCE_EXHAUSTED where nothing is
// left.
absl::StatusOr<int64_t> DefaultKvMemory(int64_t usable_bytes, int local_ranks,
                                        int64_t weight_bytes);

// Pages of this rank: --num_pages, or what fits `memory_bytes`, but no more
// than all sequences at their full length need. INVALID_ARGUMENT names the
// flags when there is not even one sequence of --max_context.
absl::StatusOr<int> NumPages(const KvCapacityInput& input);

// Tokens of a sequence, once the group has agreed on `num_pages`:
// --max_context, or the usual ones as far as the pages go. INVALID_ARGUMENT
// where the model takes fewer than --max_context.
absl::StatusOr<int> MaxContext(const KvCapacityInput& input, int num_pages);

}  // namespace lockstep
