#include "worker/sampling/candidates.h"

#include <algorithm>
#include <cmath>

#include "worker/sampling/exp_weights.h"

namespace lockstep {

Candidates::Candidates(int vocab_size)
    : all_weights_(vocab_size), buckets_(kNumBuckets) {
  ids_.reserve(vocab_size);
  weights_.reserve(vocab_size);
  sorted_.reserve(vocab_size);
}

void Candidates::Reset(absl::Span<const float> logits, float temperature) {
  logits_ = logits;
  best_ = MaxLogit(logits);
  ExpWeights(logits, best_, 1 / temperature, absl::MakeSpan(all_weights_));
  ids_.clear();
  weights_.clear();
  for (uint32_t id = 0; id < all_weights_.size(); ++id) {
    if (all_weights_[id] == 0) continue;
    ids_.push_back(id);
    weights_.push_back(all_weights_[id]);
  }
}

void Candidates::KeepTopK(uint32_t k) {
  if (k >= ids_.size()) return;
  FillBuckets();
  int bucket = 0;
  uint32_t missing = k;
  while (missing > buckets_[bucket].count) missing -= buckets_[bucket++].count;
  KeepUpTo(bucket, missing);
}

void Candidates::KeepTopP(float p) {
  if (p >= 1) return;
  FillBuckets();
  double total = 0;
  for (const Bucket& bucket : buckets_) total += bucket.weight;
  const double target = static_cast<double>(p) * total;
  int bucket = 0;
  double sum = 0;
  while (sum + buckets_[bucket].weight < target) {
    sum += buckets_[bucket++].weight;
  }
  SortBucket(bucket);
  uint32_t count = 0;
  while (count < sorted_.size() && sum < target) {
    sum += all_weights_[sorted_[count++]];
  }
  KeepUpTo(bucket, std::max(count, 1u));
}

void Candidates::KeepMinP(float min_p) {
  if (min_p <= 0) return;
  KeepIf([&](size_t i) { return weights_[i] >= min_p; });
}

uint32_t Candidates::Draw(double noise) const {
  double total = 0;
  for (const float weight : weights_) total += weight;
  const double target = noise * total;
  double sum = 0;
  for (size_t i = 0; i < ids_.size(); ++i) {
    sum += weights_[i];
    if (sum > target) return ids_[i];
  }
  return ids_.back();
}

void Candidates::FillBuckets() {
  std::fill(buckets_.begin(), buckets_.end(), Bucket());
  float least = best_;
  for (const uint32_t id : ids_) least = std::min(least, logits_[id]);
  buckets_per_logit_ = (kNumBuckets - 1) / (best_ - least);
  if (!std::isfinite(buckets_per_logit_)) buckets_per_logit_ = 0;
  for (size_t i = 0; i < ids_.size(); ++i) {
    Bucket& bucket = buckets_[BucketOf(logits_[ids_[i]])];
    ++bucket.count;
    bucket.weight += weights_[i];
  }
}

// Monotonic: rounding keeps the order of differences and of products.
int Candidates::BucketOf(float logit) const {
  if (logit == best_) return 0;
  return static_cast<int>((best_ - logit) * buckets_per_logit_);
}

void Candidates::SortBucket(int bucket) {
  sorted_.clear();
  for (const uint32_t id : ids_) {
    if (BucketOf(logits_[id]) == bucket) sorted_.push_back(id);
  }
  std::sort(sorted_.begin(), sorted_.end(), [&](uint32_t a, uint32_t b) {
    return logits_[a] != logits_[b] ? logits_[a] > logits_[b] : a < b;
  });
}

void Candidates::KeepUpTo(int bucket, uint32_t count) {
  SortBucket(bucket);
  const uint32_t last = sorted_[count - 1];
  KeepIf([&](size_t i) {
    const uint32_t id = ids_[i];
    return logits_[id] != logits_[last] ? logits_[id] > logits_[last]
                                        : id <= last;
  });
}

template <typename Keep>
void Candidates::KeepIf(Keep keep) {
  size_t kept = 0;
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (!keep(i)) continue;
    ids_[kept] = ids_[i];
    weights_[kept] = weights_[i];
    ++kept;
  }
  ids_.resize(kept);
  weights_.resize(kept);
}

}  // namespace lockstep
