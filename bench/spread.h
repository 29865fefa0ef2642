#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::bench {

// What several measurements of one thing came to.
struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};

// REQUIRES: there are some.
Spread SpreadOf(std::vector<double> values);

std::string RangeToText(const Spread& spread);  // "7.1-8.2"
nlohmann::json ToJson(const Spread& spread);    // median, min, max

// The value that `share` (0 to 1) of them do not exceed; 0 of none.
double Percentile(std::vector<double> values, double share);

// The median and the 99th percentile of seconds, in ms: "1.20 / 1.45", empty of
// none; p50, p99.
std::string PercentilesToText(const std::vector<double>& seconds);
nlohmann::json PercentilesToJson(const std::vector<double>& seconds);

}  // namespace lockstep::bench
