#pragma once

#include <cstddef>

#include "worker/collectives/collective.h"

namespace lockstep::testing {

// An all-reduce of so many floats is exchanged in several chunks.
constexpr size_t kFatalAllReduceFloats = 512 * 1024;

// Kills this process with SIGKILL in the midst of such an all-reduce, when its
// first chunks are exchanged.
[[noreturn]] void DieInAllReduce(Collective* collective);

}  // namespace lockstep::testing
