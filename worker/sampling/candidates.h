#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

namespace lockstep {

// The ids that may be drawn and their weights, which are probabilities but for
// a common factor. Each Keep narrows them to the best ones, by logit and, where
// these tie, by lower id.
//
//   Candidates candidates(vocab_size);
//   candidates.Reset(logits, temperature);
//   candidates.KeepTopP(0.9);
//   const uint32_t id = candidates.Draw(noise);
//
// Costs a few passes over the candidates; only those at the border between kept
// and dropped are sorted. All sums are of doubles in a fixed order. Holds
// scratch for one thread; allocates nothing after its construction.
class Candidates {
 public:
  explicit Candidates(int vocab_size);

  // All ids whose weight exp((logit - max) / temperature) is not zero.
  // `logits` must outlive the calls that follow.
  // REQUIRES: no NaN; temperature > 0; the size given at construction.
  void Reset(absl::Span<const float> logits, float temperature);

  // The `k` best. REQUIRES: k >= 1.
  void KeepTopK(uint32_t k);

  // The fewest whose weights sum to at least `p` of all.
  void KeepTopP(float p);

  // Those with at least `min_p` of the best one's weight, which is 1.
  void KeepMinP(float min_p);

  // The id at which the running sum of the weights exceeds `noise`, a number
  // in [0, 1), times their sum.
  uint32_t Draw(double noise) const;

  // In order of id.
  absl::Span<const uint32_t> ids() const { return ids_; }
  absl::Span<const float> weights() const { return weights_; }

 private:
  struct Bucket {
    uint32_t count = 0;
    double weight = 0;
  };

  // Candidates spread over kNumBuckets by logit, the best in the first.
  static constexpr int kNumBuckets = 2048;

  void FillBuckets();
  int BucketOf(float logit) const;
  // The candidates in `bucket`, the best first, as indices.
  void SortBucket(int bucket);
  // Keeps the buckets before `bucket`, and of it the `count` best.
  void KeepUpTo(int bucket, uint32_t count);
  template <typename Keep>
  void KeepIf(Keep keep);

  std::vector<float> all_weights_;  // [vocab_size]
  std::vector<uint32_t> ids_;
  std::vector<float> weights_;  // of ids_
  absl::Span<const float> logits_;
  std::vector<Bucket> buckets_;  // [kNumBuckets]
  float best_ = 0;               // the largest logit of the candidates
  float buckets_per_logit_ = 0;
  std::vector<uint32_t> sorted_;  // ids of one bucket
};

}  // namespace lockstep
