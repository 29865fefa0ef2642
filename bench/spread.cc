#include "bench/spread.h"

#include <absl/strings/str_format.h>
#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lockstep::bench {
namespace {

double PercentileMs(const std::vector<double>& seconds, double share) {
  return 1000 * Percentile(seconds, share);
}

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1
                            ? values[middle]
                            : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

std::string RangeToText(const Spread& spread) {
  return absl::StrFormat("%.1f-%.1f", spread.least, spread.most);
}

nlohmann::json ToJson(const Spread& spread) {
  return {
      {"median", spread.median}, {"min", spread.least}, {"max", spread.most}};
}

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t rank = std::ceil(share * values.size());
  return values[std::clamp<size_t>(rank, 1, values.size()) - 1];
}

std::string PercentilesToText(const std::vector<double>& seconds) {
  if (seconds.empty()) return "";
  return absl::StrFormat("%.2f / %.2f", PercentileMs(seconds, 0.5),
                         PercentileMs(seconds, 0.99));
}

nlohmann::json PercentilesToJson(const std::vector<double>& seconds) {
  return {{"p50", PercentileMs(seconds, 0.5)},
          {"p99", PercentileMs(seconds, 0.99)}};
}

}  // namespace lockstep::bench
