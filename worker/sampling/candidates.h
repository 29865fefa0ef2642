#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "worker/sampling/logit_blocks.h"

namespace lockstep {

// The ids that may be drawn and their weights, which are probabilities but for
// a common factor. Each Keep narrows them to the best ones, by logit and, where
// these tie, by lower id; NaN counts as minus infinity.
//
//   Candidates candidates(vocab_size);
//   candidates.Reset(logits, temperature);
//   candidates.KeepTopP(0.9);
//   const uint32_t id = candidates.Draw(noise);
//
// Costs a pass or a few over the logits; what is sorted are the best few of
// them or, where more are kept, those at the border between kept and dropped.
// All sums are of doubles in a fixed order. Holds scratch for one thread;
// allocates nothing after its construction.
class Candidates {
 public:
  explicit Candidates(int vocab_size);

  // All ids whose weight exp((logit - max) / temperature) is not zero.
  // `logits` must outlive the calls that follow.
  // REQUIRES: temperature > 0; the size given at construction.
  void Reset(absl::Span<const float> logits, float temperature);

  // The `k` best. REQUIRES: k >= 1.
  void KeepTopK(uint32_t k);

  // The fewest whose weights sum to at least `p` of all.
  void KeepTopP(float p);

  // Those with at least `min_p` of the best one's weight, which is 1.
  void KeepMinP(float min_p);

  // The id at which the running sum of the weights exceeds `noise`, a number
  // in [0, 1), times their sum.
  uint32_t Draw(double noise);

  // In order of id. Lists them if no Keep did.
  absl::Span<const uint32_t> ids();

 private:
  // Many candidates are spread over so many buckets by logit, the best in the
  // first.
  static constexpr int kNumBuckets = 2048;

  // Until something narrows them the candidates are not listed.
  void ListFrom(float least);  // those with logits of at least `least`
  double WeighAll();           // their sum
  uint32_t DrawFromAll(double noise);

  void SortIds();
  // The best whose weights sum to `target`, of sorted_; false if they do not.
  bool KeepWeight(double target);
  // If it is among the few best; else they are not listed.
  bool KeepLikelyTopP(float p);

  template <typename Visit>
  void ForEach(Visit visit) const;
  int BucketOf(uint32_t id) const;
  // Returns the sum of the amounts.
  template <typename AmountOf>
  double FillBuckets(AmountOf amount_of);
  // The id with which the running amount, the best first, reaches `target`.
  template <typename AmountOf>
  uint32_t IdAt(double target, AmountOf amount_of);

  // Those at least as good as `last`.
  void KeepUpTo(uint32_t last);
  template <typename Keep>
  void KeepIf(Keep keep);

  absl::Span<const float> logits_;
  float scale_ = 1;  // 1 / temperature
  LogitBlocks blocks_;
  std::vector<float> all_weights_;  // [vocab_size], of the listed, or weighed
  std::vector<double> block_sums_;  // of all_weights_, once weighed
  bool listed_ = false;
  std::vector<uint32_t> ids_;     // in order
  std::vector<float> weights_;    // of ids_
  std::vector<uint32_t> sorted_;  // some of ids_, the best first
  std::vector<double> buckets_;   // the weight of each
};

}  // namespace lockstep
