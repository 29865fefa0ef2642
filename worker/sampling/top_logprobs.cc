#include "worker/sampling/top_logprobs.h"

#include <algorithm>
#include <cmath>

#include "worker/sampling/logit_passes.h"

namespace lockstep {

TopLogprobs::TopLogprobs(int vocab_size)
    : blocks_(vocab_size),
      weights_(vocab_size),
      block_sums_(NumLogitBlocks(vocab_size)) {
  best_.reserve(vocab_size);
}

v1::PositionLogprobs TopLogprobs::Of(absl::Span<const float> logits,
                                     uint32_t token, int k) {
  blocks_.Reset(logits);
  const double log_sum = LogSum(logits);
  const auto fill = [&](uint32_t id, uint32_t rank, v1::TokenLogprob* out) {
    const float logit = blocks_.logit(id);
    // The difference of equal infinities is no number.
    const double below_max = logit == blocks_.best()
                                 ? 0
                                 : static_cast<double>(logit) - blocks_.best();
    out->set_token_id(id);
    out->set_logprob(static_cast<float>(below_max - log_sum));
    out->set_rank(rank);
  };

  v1::PositionLogprobs logprobs;
  fill(token, blocks_.RankOf(token), logprobs.mutable_token());
  FindBest(k);
  for (size_t i = 0; i < best_.size(); ++i) {
    fill(best_[i], static_cast<uint32_t>(i + 1), logprobs.add_top());
  }
  return logprobs;
}

double TopLogprobs::LogSum(absl::Span<const float> logits) {
  const LogitPasses& passes = GetLogitPasses();
  passes.exp_weights(logits, blocks_.best(), /*scale=*/1,
                     absl::MakeSpan(weights_));
  passes.block_sums(weights_, absl::MakeSpan(block_sums_));
  double sum = 0;
  for (const double block_sum : block_sums_) sum += block_sum;
  return std::log(sum);
}

void TopLogprobs::FindBest(int k) {
  best_.clear();
  if (k <= 0) return;
  blocks_.ForEachFrom(blocks_.LargeLogit(k),
                      [&](uint32_t id) { best_.push_back(id); });
  if (best_.size() > k) {
    std::nth_element(best_.begin(), best_.begin() + k, best_.end(),
                     blocks_.by_logit());
    best_.resize(k);
  }
  std::sort(best_.begin(), best_.end(), blocks_.by_logit());
}

}  // namespace lockstep
