#include "worker/sampling/token_mask.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>

namespace lockstep {

// Most masks allow few ids, or almost all; either way one pass.
void CopyMasked(absl::Span<const float> logits, TokenMask mask,
                absl::Span<float> masked) {
  constexpr float kForbidden = -std::numeric_limits<float>::infinity();
  CHECK_EQ(logits.size(), masked.size());
  CHECK_EQ(mask.size(), (logits.size() + 31) / 32);
  std::fill(masked.begin(), masked.end(), kForbidden);
  for (size_t word = 0; word < mask.size(); ++word) {
    for (uint32_t bits = mask[word]; bits != 0; bits &= bits - 1) {
      const size_t id = word * 32 + std::countr_zero(bits);
      if (id >= logits.size()) return;
      // NaN compares as less.
      masked[id] = logits[id] > kLeastAllowedLogit ? logits[id]
                                                   : kLeastAllowedLogit;
    }
  }
}

}  // namespace lockstep
