#pragma once

#include <absl/status/status.h>

#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"

namespace lockstep {

// Whether the engine for GPUs computes such a model: every one whose heads are
// not too long. UNIMPLEMENTED names the architecture and what of it there is no
// kernel for.
absl::Status CheckCudaModel(const ModelConfig& config);

// And on so many ranks: the query heads of a rank are a whole number for each
// of its key-value heads. INVALID_ARGUMENT names --tensor_parallel_size and the
// sizes that would do.
absl::Status CheckCudaShards(const ModelConfig& config, int size);

}  // namespace lockstep
