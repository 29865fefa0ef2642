#include "worker/sampling/logit_blocks.h"

#include <glog/logging.h>

#include <algorithm>
#include <functional>
#include <limits>

namespace lockstep {
namespace {

constexpr float kLeast = -std::numeric_limits<float>::infinity();

}  // namespace

LogitBlocks::LogitBlocks(int vocab_size)
    : maxima_(NumLogitBlocks(vocab_size)), scratch_(maxima_.size()) {}

void LogitBlocks::Reset(absl::Span<const float> logits) {
  CHECK_EQ(NumLogitBlocks(logits.size()), maxima_.size());
  logits_ = logits;
  GetLogitPasses().block_maxima(logits, absl::MakeSpan(maxima_));
  best_ = kLeast;
  for (const float maximum : maxima_) best_ = std::max(best_, maximum);
}

uint32_t LogitBlocks::best_id() const {
  const size_t block =
      std::find(maxima_.begin(), maxima_.end(), best_) - maxima_.begin();
  size_t id = block * kLogitBlock;
  while (logit(id) != best_) ++id;
  return static_cast<uint32_t>(id);
}

uint32_t LogitBlocks::RankOf(uint32_t id) const {
  const float own = logit(id);
  uint32_t rank = 1;
  ForEachFrom(own, [&](uint32_t other) { rank += IsBetter(other, id); });
  return rank;
}

float LogitBlocks::LargeLogit(int count) {
  if (count > maxima_.size()) return kLeast;
  std::copy(maxima_.begin(), maxima_.end(), scratch_.begin());
  const auto at = scratch_.begin() + count - 1;
  std::nth_element(scratch_.begin(), at, scratch_.end(), std::greater<float>());
  return *at;
}

}  // namespace lockstep
