#pragma once

#include <absl/types/span.h>

#include <cstdint>

namespace lockstep {

// Which ids may be chosen: a bit for each, that of id 0 the lowest of the first
// word. Empty: all.
using TokenMask = absl::Span<const uint32_t>;

inline bool Allows(TokenMask mask, uint32_t id) {
  return (mask[id / 32] >> (id % 32) & 1) != 0;
}

// Of the ids in the mask their logits, of the others minus infinity. One in the
// mask that is minus infinity itself, or NaN, becomes kLeastAllowedLogit, so
// that it goes before those that are not.
// REQUIRES: a bit for each logit; masked.size() == logits.size().
inline constexpr float kLeastAllowedLogit = -1e30f;
void CopyMasked(absl::Span<const float> logits, TokenMask mask,
                absl::Span<float> masked);

}  // namespace lockstep
