#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace lockstep::bench {

// Counts durations in buckets that are each a hundredth wider than the one
// before, from a microsecond on: any number of them in little memory, and every
// quantile within half a percent.
class Histogram {
 public:
  void Record(double seconds);

  int64_t count() const { return count_; }
  double most_s() const { return most_s_; }

  // The duration that `share` (0 to 1) of them do not exceed; 0 of none.
  double QuantileS(double share) const;

  // Of durations up to `seconds`.
  double ShareUpTo(double seconds) const;

  nlohmann::json ToJson() const;
  // Of what ToJson has made. What is none is left out.
  static Histogram FromJson(const nlohmann::json& json);

 private:
  std::vector<int64_t> buckets_;
  int64_t count_ = 0;
  double most_s_ = 0;
};

}  // namespace lockstep::bench
