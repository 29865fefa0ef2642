#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

namespace lockstep {

// How the ranks of a group exchange tensors: alone, over memory of one host,
// over TCP, or between GPUs. On the CPU all give the same bits.
enum class CollectiveKind { kSingle, kSharedMemory, kGloo, kNccl };

// "single", "shared_memory", "gloo" or "nccl".
const char* CollectiveName(CollectiveKind kind);

// From the value of --collective: shared_memory, gloo, nccl, or auto
// (shared_memory where --num_nodes is 1, else gloo: ranks that turn out to
// compute on GPUs take nccl, see ChooseDevice). A group of one rank needs none.
// INVALID_ARGUMENT names the flag, its value and what it may be.
absl::StatusOr<CollectiveKind> ParseCollective(absl::string_view flag,
                                               int tensor_parallel_size,
                                               int num_nodes);

}  // namespace lockstep
