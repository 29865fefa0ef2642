#pragma once

#include <absl/types/span.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "worker/sampling/logit_passes.h"

namespace lockstep {

// A row of logits of which one pass has found the largest of each block of
// kLogitBlock, so that the best ids are found without a look at most others.
// Better is the larger logit and, of equal ones, the lower id; NaN counts as
// minus infinity.
//
//   LogitBlocks blocks(vocab_size);
//   blocks.Reset(logits);
//   const uint32_t token = blocks.best_id();
//
// Holds scratch for one thread; allocates nothing after its construction.
class LogitBlocks {
 public:
  explicit LogitBlocks(int vocab_size);

  // `logits` must outlive the calls that follow.
  // REQUIRES: the size given at construction.
  void Reset(absl::Span<const float> logits);

  // Minus infinity if there are no logits.
  float best() const { return best_; }
  uint32_t best_id() const;

  float logit(uint32_t id) const {
    const float logit = logits_[id];
    // Only NaN differs from itself.
    return logit == logit ? logit : -std::numeric_limits<float>::infinity();
  }
  bool IsBetter(uint32_t a, uint32_t b) const {
    const float logit_a = logit(a), logit_b = logit(b);
    return logit_a != logit_b ? logit_a > logit_b : a < b;
  }

  // Compares for std::sort and the like: the best first.
  auto by_logit() const {
    return [this](uint32_t a, uint32_t b) { return IsBetter(a, b); };
  }

  // How many ids are at least as good as `id`.
  uint32_t RankOf(uint32_t id) const;

  // Of the `count` largest maxima of blocks the least: at least `count` logits
  // are as large, and about as many. Minus infinity beyond the blocks.
  float LargeLogit(int count);

  // Calls visit(id) for the ids with logits of at least `least`, in order.
  template <typename Visit>
  void ForEachFrom(float least, Visit visit) const;

 private:
  absl::Span<const float> logits_;
  float best_ = 0;
  std::vector<float> maxima_;   // of the blocks
  std::vector<float> scratch_;  // as many
};

template <typename Visit>
void LogitBlocks::ForEachFrom(float least, Visit visit) const {
  for (size_t block = 0; block < maxima_.size(); ++block) {
    if (maxima_[block] < least) continue;
    const size_t begin = block * kLogitBlock;
    const size_t end = std::min(begin + kLogitBlock, logits_.size());
    for (size_t id = begin; id < end; ++id) {
      if (logit(id) >= least) visit(static_cast<uint32_t>(id));
    }
  }
}

}  // namespace lockstep
