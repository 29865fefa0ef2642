#include "bench/load/histogram.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace lockstep::bench {
namespace {

constexpr double kLeast = 1e-6;
const double kGrowth = std::log(1.01);
constexpr int kBuckets = 2'600;  // up to two days

int BucketOf(double seconds) {
  if (!(seconds > kLeast)) return 0;
  return std::min(kBuckets - 1,
                  static_cast<int>(std::log(seconds / kLeast) / kGrowth));
}

double MiddleOf(int bucket) {
  return kLeast * std::exp((bucket + 0.5) * kGrowth);
}

}  // namespace

void Histogram::Record(double seconds) {
  const int bucket = BucketOf(seconds);
  if (bucket >= static_cast<int>(buckets_.size())) buckets_.resize(bucket + 1);
  ++buckets_[bucket];
  ++count_;
  most_s_ = std::max(most_s_, seconds);
}

double Histogram::QuantileS(double share) const {
  const auto rank = static_cast<int64_t>(std::ceil(share * count_));
  int64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen > 0 && seen >= rank) return std::min(MiddleOf(i), most_s_);
  }
  return most_s_;
}

double Histogram::ShareUpTo(double seconds) const {
  if (count_ == 0) return 0;
  int64_t seen = 0;
  for (size_t i = 0; i < buckets_.size() && MiddleOf(i) <= seconds; ++i) {
    seen += buckets_[i];
  }
  return static_cast<double>(seen) / count_;
}

nlohmann::json Histogram::ToJson() const {
  nlohmann::json buckets = nlohmann::json::object();
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i] > 0) buckets[std::to_string(i)] = buckets_[i];
  }
  return {{"most_s", most_s_}, {"buckets", buckets}};
}

Histogram Histogram::FromJson(const nlohmann::json& json) {
  Histogram histogram;
  const auto buckets = json.value("buckets", nlohmann::json::object());
  for (const auto& [key, number] : buckets.items()) {
    const int bucket = std::atoi(key.c_str());
    if (bucket < 0 || bucket >= kBuckets || !number.is_number_integer()) {
      continue;
    }
    if (bucket >= static_cast<int>(histogram.buckets_.size())) {
      histogram.buckets_.resize(bucket + 1);
    }
    histogram.buckets_[bucket] += number.get<int64_t>();
    histogram.count_ += number.get<int64_t>();
  }
  histogram.most_s_ = json.value("most_s", 0.0);
  return histogram;
}

}  // namespace lockstep::bench
