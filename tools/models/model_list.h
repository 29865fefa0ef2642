#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <string>

#include "hub/cached_models.h"

namespace lockstep {

// A table of models: format and types of their weights, size on disk, what a
// worker of one rank takes with all defaults, and whether that fits in
// `usable_bytes` with room for a KV cache. What a worker would refuse says why.
std::string ModelTable(absl::Span<const LocalModel> models,
                       int64_t usable_bytes);

}  // namespace lockstep
