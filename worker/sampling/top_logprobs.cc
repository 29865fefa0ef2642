#include "worker/sampling/top_logprobs.h"

#include <algorithm>
#include <cmath>

#include "worker/sampling/exp_weights.h"

namespace lockstep {
namespace {

using Entry = std::pair<float, uint32_t>;

bool IsMoreProbable(const Entry& a, const Entry& b) {
  return a.first != b.first ? a.first > b.first : a.second < b.second;
}

uint32_t RankOf(absl::Span<const float> logits, uint32_t token) {
  const float logit = logits[token];
  uint32_t rank = 1;
  for (uint32_t id = 0; id < logits.size(); ++id) {
    rank += logits[id] > logit || (logits[id] == logit && id < token);
  }
  return rank;
}

}  // namespace

TopLogprobs::TopLogprobs(int vocab_size) : weights_(vocab_size) {}

v1::PositionLogprobs TopLogprobs::Of(absl::Span<const float> logits,
                                     uint32_t token, int k) {
  const float max = MaxLogit(logits);
  ExpWeights(logits, max, /*scale=*/1, absl::MakeSpan(weights_));
  double sum = 0;
  for (const float weight : weights_) sum += weight;
  const double log_sum = std::log(sum);
  const auto fill = [&](uint32_t id, uint32_t rank, v1::TokenLogprob* out) {
    // The difference of equal infinities is no number.
    const double below_max =
        logits[id] == max ? 0 : static_cast<double>(logits[id]) - max;
    out->set_token_id(id);
    out->set_logprob(static_cast<float>(below_max - log_sum));
    out->set_rank(rank);
  };

  v1::PositionLogprobs logprobs;
  fill(token, RankOf(logits, token), logprobs.mutable_token());
  FindBest(logits, k);
  for (size_t i = 0; i < best_.size(); ++i) {
    fill(best_[i].second, static_cast<uint32_t>(i + 1), logprobs.add_top());
  }
  return logprobs;
}

void TopLogprobs::FindBest(absl::Span<const float> logits, int k) {
  best_.clear();
  if (k <= 0) return;
  // A heap with the least of the best so far on top; most ids fail at it.
  for (uint32_t id = 0; id < logits.size(); ++id) {
    if (best_.size() == k) {
      if (!(logits[id] > best_.front().first)) continue;
      std::pop_heap(best_.begin(), best_.end(), IsMoreProbable);
      best_.pop_back();
    }
    best_.emplace_back(logits[id], id);
    std::push_heap(best_.begin(), best_.end(), IsMoreProbable);
  }
  std::sort_heap(best_.begin(), best_.end(), IsMoreProbable);
}

}  // namespace lockstep
