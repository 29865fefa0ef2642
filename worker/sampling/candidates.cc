#include "worker/sampling/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "worker/sampling/logit_passes.h"

namespace lockstep {
namespace {

constexpr float kLeast = -std::numeric_limits<float>::infinity();

// So many are sorted without a second thought.
constexpr size_t kFew = 1024;

// So many blocks hold one of the best, at least, where looking into the blocks
// of the best is worth it.
constexpr size_t kBlocksOfOneBest = 4;

// A top-p is looked for among so many of the best ids, in turn.
constexpr int kLikelyTopP[] = {32, 256};

}  // namespace

Candidates::Candidates(int vocab_size)
    : blocks_(vocab_size),
      all_weights_(vocab_size),
      block_sums_(NumLogitBlocks(vocab_size)),
      buckets_(kNumBuckets) {
  ids_.reserve(vocab_size);
  weights_.reserve(vocab_size);
  sorted_.reserve(vocab_size);
}

void Candidates::Reset(absl::Span<const float> logits, float temperature) {
  logits_ = logits;
  scale_ = 1 / temperature;
  blocks_.Reset(logits);
  listed_ = false;
}

void Candidates::KeepTopK(uint32_t k) {
  if (k >= (listed_ ? ids_.size() : logits_.size())) return;
  if (!listed_ && k > block_sums_.size() / kBlocksOfOneBest) {
    WeighAll();
    const auto one = [](uint32_t) { return 1.0; };
    if (FillBuckets(one) > k) KeepUpTo(IdAt(k, one));
    return;
  }
  if (!listed_) ListFrom(blocks_.LargeLogit(static_cast<int>(k)));
  if (k >= ids_.size()) return;
  sorted_ = ids_;
  const auto last = sorted_.begin() + (k - 1);
  std::nth_element(sorted_.begin(), last, sorted_.end(), blocks_.by_logit());
  KeepUpTo(*last);
}

void Candidates::KeepTopP(float p) {
  if (p >= 1) return;
  if (!listed_ && KeepLikelyTopP(p)) return;
  if (listed_ && ids_.size() <= kFew) {
    SortIds();
    double total = 0;
    for (const uint32_t id : sorted_) total += all_weights_[id];
    KeepWeight(static_cast<double>(p) * total);
    return;
  }
  const auto weight = [this](uint32_t id) -> double {
    return all_weights_[id];
  };
  const double total = FillBuckets(weight);
  KeepUpTo(IdAt(static_cast<double>(p) * total, weight));
}

bool Candidates::KeepLikelyTopP(float p) {
  const double target = static_cast<double>(p) * WeighAll();
  for (const int num_best : kLikelyTopP) {
    ListFrom(blocks_.LargeLogit(num_best));
    if (ids_.size() > kFew) break;
    SortIds();
    if (KeepWeight(target)) return true;
  }
  listed_ = false;
  return false;
}

bool Candidates::KeepWeight(double target) {
  double sum = 0;
  for (const uint32_t id : sorted_) {
    sum += all_weights_[id];
    if (sum < target) continue;
    KeepUpTo(id);
    return true;
  }
  return false;
}

void Candidates::KeepMinP(float min_p) {
  if (min_p <= 0) return;
  if (!listed_) {
    // A little less than the logit of that weight: the C library's logarithm
    // decides nothing.
    constexpr double kLittle = 1e-3;
    const double below = (std::log(static_cast<double>(min_p)) - kLittle) /
                         static_cast<double>(scale_);
    ListFrom(std::isfinite(blocks_.best())
                 ? static_cast<float>(blocks_.best() + below)
                 : kLeast);
  }
  KeepIf([&](size_t i) { return weights_[i] >= min_p; });
}

uint32_t Candidates::Draw(double noise) {
  if (!listed_) return DrawFromAll(noise);
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

absl::Span<const uint32_t> Candidates::ids() {
  if (!listed_) ListFrom(kLeast);
  return ids_;
}

double Candidates::WeighAll() {
  const LogitPasses& passes = GetLogitPasses();
  passes.exp_weights(logits_, blocks_.best(), scale_,
                     absl::MakeSpan(all_weights_));
  passes.block_sums(all_weights_, absl::MakeSpan(block_sums_));
  double total = 0;
  for (const double sum : block_sums_) total += sum;
  return total;
}

void Candidates::ListFrom(float least) {
  listed_ = true;
  ids_.clear();
  weights_.clear();
  blocks_.ForEachFrom(least, [&](uint32_t id) {
    ids_.push_back(id);
    weights_.push_back(blocks_.logit(id));
  });
  GetLogitPasses().exp_weights(weights_, blocks_.best(), scale_,
                               absl::MakeSpan(weights_));
  for (size_t i = 0; i < ids_.size(); ++i) all_weights_[ids_[i]] = weights_[i];
  KeepIf([&](size_t i) { return weights_[i] != 0; });
}

// The block in which the running sum exceeds the target, then the id there; or
// the last one with weight, as the sums are rounded.
uint32_t Candidates::DrawFromAll(double noise) {
  const double target = noise * WeighAll();
  size_t block = 0;
  double before = 0, sum = 0;
  for (size_t i = 0; i < block_sums_.size() && sum <= target; ++i) {
    if (block_sums_[i] == 0) continue;
    block = i;
    before = sum;
    sum += block_sums_[i];
  }
  const size_t begin = block * kLogitBlock;
  const size_t end = std::min(begin + kLogitBlock, logits_.size());
  size_t drawn = begin;
  for (size_t id = begin; id < end && before <= target; ++id) {
    if (all_weights_[id] == 0) continue;
    drawn = id;
    before += all_weights_[id];
  }
  return static_cast<uint32_t>(drawn);
}

void Candidates::SortIds() {
  sorted_ = ids_;
  std::sort(sorted_.begin(), sorted_.end(), blocks_.by_logit());
}

template <typename Visit>
void Candidates::ForEach(Visit visit) const {
  if (listed_) {
    for (const uint32_t id : ids_) visit(id);
    return;
  }
  for (uint32_t id = 0; id < all_weights_.size(); ++id) {
    if (all_weights_[id] != 0) visit(id);
  }
}

// Monotonic: rounding keeps the order of differences and of products. Weights
// are 0 from e^-87 on, so no candidate is beyond the last bucket.
int Candidates::BucketOf(uint32_t id) const {
  constexpr float kBucketsPerLogit = (kNumBuckets - 1) / 88.0f;
  const float logit = blocks_.logit(id);
  if (logit == blocks_.best()) return 0;
  return static_cast<int>((blocks_.best() - logit) *
                          (scale_ * kBucketsPerLogit));
}

template <typename AmountOf>
double Candidates::FillBuckets(AmountOf amount_of) {
  std::fill(buckets_.begin(), buckets_.end(), 0);
  ForEach([&](uint32_t id) { buckets_[BucketOf(id)] += amount_of(id); });
  double total = 0;
  for (const double amount : buckets_) total += amount;
  return total;
}

template <typename AmountOf>
uint32_t Candidates::IdAt(double target, AmountOf amount_of) {
  int bucket = 0;
  double sum = 0;
  while (sum + buckets_[bucket] < target) sum += buckets_[bucket++];
  sorted_.clear();
  ForEach([&](uint32_t id) {
    if (BucketOf(id) == bucket) sorted_.push_back(id);
  });
  std::sort(sorted_.begin(), sorted_.end(), blocks_.by_logit());
  for (const uint32_t id : sorted_) {
    sum += amount_of(id);
    if (sum >= target) return id;
  }
  return sorted_.back();
}

void Candidates::KeepUpTo(uint32_t last) {
  if (!listed_) ListFrom(blocks_.logit(last));
  KeepIf([&](size_t i) { return !blocks_.IsBetter(last, ids_[i]); });
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
