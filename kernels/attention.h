#pragma once

#include "kernels/attention_tile.h"
#include "kernels/isa/kernel_table.h"
#include "kernels/threads/thread_pool.h"

namespace lockstep::kernels {

// Attention over a batch, by all threads of a pool. Tiles are computed one a
// thread; where a few long ones would leave threads idle (one sequence that
// decodes far into its context), these are split into their chunks, and the
// chunks' sums meet in scratch on the caller's stack, 1 MiB. What is split
// depends on the batch and the number of threads, the result does not.
void ComputeAttention(const KernelTable& table, ThreadPool& pool,
                      const AttentionInput& input);

}  // namespace lockstep::kernels
