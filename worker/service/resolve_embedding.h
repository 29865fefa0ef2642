#pragma once

#include <absl/status/statusor.h>

#include "proto/embedding.pb.h"
#include "proto/group.pb.h"

namespace lockstep {

// Every default filled in from what the model says of itself, every bound of
// embedding.proto checked: INVALID_ARGUMENT names field
// ("embedding.dimensions"), value and limit.
absl::StatusOr<v1::ResolvedEmbedding> ResolveEmbedding(
    const v1::EmbeddingParams& params, const v1::EmbeddingInfo& info);

}  // namespace lockstep
