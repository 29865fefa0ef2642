#include "bench/spread.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lockstep::bench {

Spread SpreadOf(std::vector<double> values) {
  CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1
                            ? values[middle]
                            : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t rank = std::ceil(share * values.size());
  return values[std::clamp<size_t>(rank, 1, values.size()) - 1];
}

}  // namespace lockstep::bench
